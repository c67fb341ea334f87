package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/zstd"
)

// zstdProgram is argv[0] of a litterbox that unpacks standard input, for one that
// does not link the library. The window follows. It is never typed.
const zstdProgram = "litterbox-zstd"

func unpacks(args []string) bool { return len(args) == 2 && args[0] == zstdProgram }

func unpack(args []string) int {
	window, err := strconv.ParseUint(args[1], 10, 64)
	if err == nil {
		err = unpackTo(os.Stdout, os.Stdin, window)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func unpackTo(out io.Writer, in io.Reader, window uint64) error {
	plain, err := zstd.NewReader(in, window)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, plain)
	return errors.Join(err, plain.Close())
}
