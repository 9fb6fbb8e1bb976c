#include "transform/kernels.h"
namespace headrace { const Kernels& vector_kernels() { return scalar_kernels(); } }
