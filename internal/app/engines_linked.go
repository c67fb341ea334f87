//go:build !embedguest

package app

import (
	"context"
	"fmt"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container/moby"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

func engineOfContainers() container.Engine {
	return &moby.Engine{Env: caller.ThisProcess().Env, Program: func(architecture string) (moby.Program, error) {
		program, err := payload.Outpost("linux", architecture)
		return moby.Program(program), err
	}}
}

// answerEngine carries out one order from standard input.
func answerEngine() int {
	if err := container.Carry(context.Background(), engineOfContainers(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 1
	}
	return 0
}
