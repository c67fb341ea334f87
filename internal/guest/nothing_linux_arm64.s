#include "textflag.h"

// A handler that returns at once, to what the kernel has put into the link
// register: the restorer, rt_sigreturn(2).
TEXT nothing<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

TEXT restore<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $139, R8
	SVC
	BRK // not reached

GLOBL ·nothing(SB), RODATA, $8
DATA ·nothing(SB)/8, $nothing<>(SB)

GLOBL ·restore(SB), RODATA, $8
DATA ·restore(SB)/8, $restore<>(SB)
