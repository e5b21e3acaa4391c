/* Runs a fuzzer's function over the files of its corpus, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!file)
		return 1;
	(void)fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	data = malloc(size > 0 ? (size_t)size : 1);
	if (!data || size < 0 || fread(data, 1, (size_t)size, file) != (size_t)size)
		size = 0;
	(void)fclose(file);
	(void)LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int replayed = 0;

	if (!dir) {
		(void)fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (replay(path))
			return 1;
		replayed++;
	}
	(void)closedir(dir);
	(void)printf("%d inputs replayed\n", replayed);
	return replayed == 0;
}
