package moby

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// image finds an image, and pulls it on request or when it is not there.
func (s *session) image(ctx context.Context, progress func(container.Progress)) (*sandbox.Image, error) {
	name := s.order.Image
	if err := s.knowsRuntime(ctx); err != nil {
		return nil, err
	}
	found, err := s.client.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) || err == nil && s.order.Pull {
		if err := s.pull(ctx, progress); err != nil {
			return nil, err
		}
		found, err = s.client.ImageInspect(ctx, name)
	}
	if err != nil {
		return nil, s.sealed(err, "cannot find the image "+name)
	}
	if found.Os != "linux" && found.Os != "" || found.Architecture != runtime.GOARCH && found.Architecture != "" {
		return nil, fault.New(fault.Unsupported, "cannot use the image %q: it is for %s on %s, and sandboxes are for linux on %s", name, found.Os, found.Architecture, runtime.GOARCH).
			WithHint("%s pull --platform linux/%s %s", s.order.Kind, runtime.GOARCH, name)
	}
	made := &sandbox.Image{Digest: found.ID}
	if c := found.Config; c != nil {
		user, _, _ := strings.Cut(c.User, ":")
		made.Env, made.WorkingDir, made.User = c.Env, c.WorkingDir, user
	}
	return made, nil
}

// knowsRuntime refuses a runtime that the engine does not have, before an image is
// pulled for it.
func (s *session) knowsRuntime(ctx context.Context) error {
	wanted := s.order.Runtime
	if wanted == "" {
		return nil
	}
	info, err := s.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return s.sealed(err, "cannot ask "+s.order.Kind.Title()+" for its runtimes")
	}
	if _, has := info.Info.Runtimes[wanted]; has {
		return nil
	}
	known := slices.Sorted(maps.Keys(info.Info.Runtimes))
	return fault.Wrap("", driver.ErrUnsupported, "cannot use the runtime %q: %s knows only %s", wanted, s.order.Kind.Title(), oneLine(strings.Join(known, ", "))).
		WithHint("container.runtime = %q", "runc")
}

// pull makes the engine pull an image.
func (s *session) pull(ctx context.Context, progress func(container.Progress)) error {
	const what = "pulling the image"
	pulling, err := s.client.ImagePull(ctx, s.order.Image, client.ImagePullOptions{})
	if err == nil {
		err = follow(ctx, pulling, func(done, total int) {
			if progress != nil {
				progress(container.Progress{What: what, Done: done, Total: total})
			}
		})
	}
	if err != nil {
		sealed := fault.Wrap("", s.sealed(err, "cannot pull the image "+s.order.Image), "%s has no such image", s.order.Kind.Title())
		return sealed.WithHint("%s pull %s", s.order.Kind, s.order.Image)
	}
	return nil
}

// follow adds up what the layers report, in KiB: sums of bytes may not fit.
func follow(ctx context.Context, pulling client.ImagePullResponse, say func(done, total int)) error {
	type layer struct{ done, total int64 }
	layers := map[string]layer{}
	for message, err := range pulling.JSONMessages(ctx) {
		if err != nil {
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		if message.Progress == nil || message.Progress.Total <= 0 || len(layers) > 1<<12 {
			continue
		}
		layers[message.ID] = layer{message.Progress.Current, message.Progress.Total}
		var sum layer
		for _, one := range layers {
			sum.done, sum.total = sum.done+one.done, sum.total+one.total
		}
		say(int(sum.done>>10), int(sum.total>>10))
	}
	return nil
}
