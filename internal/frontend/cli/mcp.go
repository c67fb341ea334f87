package cli

import (
	"time"

	"github.com/spf13/cobra"
)

// ServeRequest asks to serve agents. The fields are those of the flags.
type ServeRequest struct {
	Dir          string
	HTTP         string
	TokenFile    string
	AnyAddress   bool
	AnswerWithin time.Duration
	Structured   bool
}

func newMCP(s *session) *cobra.Command {
	var r ServeRequest
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents over the Model Context Protocol",
		Long: `Serve the sandboxes of this repository to an agent, over the Model Context
Protocol on standard input and output: name this command in your client's list of
MCP servers. A session works on one sandbox at a time, and other agents cannot use
that sandbox meanwhile; when the client goes away, the sandbox and its commits stay.

Answers are text for a model. With --structured each answer also has structured
content, and each tool declares its output schema, for programs that call the tools.

With --http many sessions are served over streamable HTTP. It prints the URL and
a token, which every client needs.`,
		Example: `  litterbox mcp
  litterbox -C ~/project mcp --http 127.0.0.1:8970 --token-file ~/.litterbox-token`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case r.AnswerWithin <= 0:
				return usageError(cmd, "--answer-within %s leaves no time", r.AnswerWithin)
			case r.HTTP == "" && (r.TokenFile != "" || r.AnyAddress):
				return usageError(cmd, "--token-file and --any-address belong to --http")
			}
			var err error
			if r.Dir, err = s.dir.absolute(); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return s.serve(ctx, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.HTTP, "http", "", "serve streamable HTTP on `ADDR`, such as 127.0.0.1:8970")
	f.StringVar(&r.TokenFile, "token-file", "", "the token for --http is in `FILE`; written when missing")
	f.BoolVar(&r.AnyAddress, "any-address", false, "let --http listen where other machines reach it; there is no encryption")
	f.BoolVar(&r.Structured, "structured", false, "add structured content to each answer, for programs")
	f.DurationVar(&r.AnswerWithin, "answer-within", 45*time.Second, "answer within `D`, also while a command goes on")
	return cmd
}
