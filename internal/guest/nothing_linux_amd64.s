#include "textflag.h"

// A handler that returns to its restorer at once.
TEXT nothing<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

// What a handler returns to: the kernel continues the thread, rt_sigreturn(2).
TEXT restore<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $15, AX
	SYSCALL
	INT  $3 // not reached

GLOBL ·nothing(SB), RODATA, $8
DATA ·nothing(SB)/8, $nothing<>(SB)

GLOBL ·restore(SB), RODATA, $8
DATA ·restore(SB)/8, $restore<>(SB)
