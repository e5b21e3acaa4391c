#include "fuzz/smi_body.h"

SMI_FUZZ(reader_smi_dmon)
