/*
 * hash.h - 64-bit hashes of bytes and numbers, keyed by a seed.
 *
 * For tables in memory only: values differ between versions and are not
 * written to files. hash_seed gives one random seed a process.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t hash_seed(void);

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t value, uint64_t seed)
{
	return hash_mix(value ^ 0x9e3779b97f4a7c15u, seed ^ 0xd1b54a32d192ed03u);
}

static inline uint64_t hash_load(const unsigned char *at, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, at, len);
	return word;
}

/* Multiply and fold, 16 bytes a step: short names are what we hash most. Longer
 * texts go in two chains, which the processor works on at the same time. */
static inline uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
	const unsigned char *at = bytes;
	uint64_t h = seed ^ (len * 0xa0761d6478bd642fu);

	if (len > 64) {
		uint64_t g = h ^ 0x2d358dccaa6c78a5u;

		for (; len > 32; len -= 32, at += 32) {
			h = hash_mix(hash_load(at, 8) ^ 0xe7037ed1a0b428dbu,
				     hash_load(at + 8, 8) ^ h);
			g = hash_mix(hash_load(at + 16, 8) ^ 0x8bb84b93962eacc9u,
				     hash_load(at + 24, 8) ^ g);
		}
		h ^= g;
	}
	for (; len > 16; len -= 16, at += 16)
		h = hash_mix(hash_load(at, 8) ^ 0xe7037ed1a0b428dbu, hash_load(at + 8, 8) ^ h);
	if (len >= 8)
		h = hash_mix(hash_load(at, 8) ^ 0x8ebc6af09c88c6e3u,
			     hash_load(at + len - 8, 8) ^ h);
	else
		h = hash_mix(hash_load(at, len) ^ 0x589965cc75374cc3u, h ^ 0x1d8e4e27c47d124fu);
	return hash_mix(h ^ seed, 0x9e3779b97f4a7c15u);
}
