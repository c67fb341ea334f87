package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// ImageRequest asks to build the image of virtual machines. The fields are those of
// the flags; the builder chooses empty ones.
type ImageRequest struct {
	Suite    string
	Mirror   string
	Packages []string
	Say      func(what string) // what is done now
}

// ImageResult is the image that virtual machines start from now on.
type ImageResult struct {
	ID       string   `json:"id"`
	Dir      string   `json:"dir"`
	System   string   `json:"system"`
	Kernel   string   `json:"kernel"`
	Packages []string `json:"packages"`
}

func newMachineBuildImage(s *session) *cobra.Command {
	var r ImageRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "build-image",
		Short: "Build what virtual machines start from",
		Long: `Build the image for sandboxes that each have their own virtual machine: Debian's
kernel, a userland of Debian packages, and a program of litterbox, which is all that
runs beside sandboxes. It needs Debian's apt-get and mmdebstrap, squashfs-tools,
e2fsprogs and qemu-utils, but no root where user namespaces have subordinate ids.
The same packages make the same bytes. Existing machines keep their image.`,
		Example: `  litterbox machine build-image
  litterbox machine build-image --packages git,nodejs,npm,make,gcc`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			r.Say = func(what string) { s.console.note("building %s", what) }
			built, err := s.image(ctx, r)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(built)
			}
			return s.console.print("built the image %s with %s in %s\n", clean(built.ID), clean(built.Kernel), clean(built.Dir))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.Packages, "packages", nil, "packages of the userland besides Debian's essential ones, instead of a list of common tools")
	f.StringVar(&r.Suite, "suite", "", "take the userland from the `SUITE` of Debian (default bookworm)")
	f.StringVar(&r.Mirror, "mirror", "", "take it from the mirror at `URL`")
	f.BoolVar(&json, "json", false, "print the image as one JSON object")
	return cmd
}

// imageBuilder is what the composition root hands to the command.
type imageBuilder func(context.Context, ImageRequest) (ImageResult, error)
