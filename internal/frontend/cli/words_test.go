package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func TestWordsOfOtherPrograms(t *testing.T) {
	for word, want := range map[string]string{
		"rm": "delete", "ps": "list", "attach": "shell", "show": "status", "inspect": "status", "cat": "read",
	} {
		out := lb(t, nil, "", word)
		if out.Code != 2 || !strings.Contains(out.Stderr, "  try: litterbox "+want+"\n") {
			t.Errorf("%s: %+v", word, out)
		}
	}
}

func TestHelpOfWhatDoesNotExist(t *testing.T) {
	for _, args := range [][]string{{"help", "nonsense"}, {"help", "agent", "nonsense"}} {
		if out := lb(t, nil, "", args...); out.Code != 2 || !strings.Contains(out.Stderr, "no such command") || out.Stdout != "" {
			t.Errorf("%q: %+v", args, out)
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "exec"}, {"help", "exit-codes"}, {"help", "agent", "install"}} {
		if out := lb(t, nil, "", args...); out.Code != 0 || out.Stdout == "" {
			t.Errorf("%q: %+v", args, out)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	want := lb(t, nil, "", "version")
	for _, flag := range []string{"--version", "-v"} {
		if out := lb(t, nil, "", flag); out != want {
			t.Errorf("%s: %+v, and version: %+v", flag, out, want)
		}
	}
}

func TestWhatTheNetworkRefused(t *testing.T) {
	refused := []engine.Refusal{
		{Destination: "registry.npmjs.org:443", Rule: "registry.npmjs.org", Preset: "preset:npm"},
		{Destination: "registry.npmjs.org:443", Rule: "registry.npmjs.org", Preset: "preset:npm"},
		{Destination: "a.example:22", Rule: "a.example:22"},
		{Destination: "10.0.0.1:9"}, {Destination: "b:1"}, {Destination: "c:1"}, {Destination: "d:1"},
	}
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (result engine.ExecResult, err error) {
		if r.Refusals {
			result.Refused = refused
		}
		return result, nil
	}}
	want := "note: the network refused registry.npmjs.org:443, a.example:22, 10.0.0.1:9, b:1, c:1 and 1 more (litterbox network fix); " +
		"to open it: litterbox allow fix preset:npm a.example:22\n"
	for _, command := range []string{"exec", "shell"} {
		wantOutcome(t, lb(t, e, "", command, "fix", "--", "true"), outcome{0, "", want})
	}
	refused = []engine.Refusal{{Destination: "api.openai.com:443", Path: "/v1/responses", Why: "the budget is reached"}}
	wantOutcome(t, lb(t, e, "", "exec", "fix", "--", "true"), outcome{0, "", "note: the network refused api.openai.com:443 (litterbox network fix says why)\n"})
}
