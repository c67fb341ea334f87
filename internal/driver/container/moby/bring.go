package moby

import (
	"archive/tar"
	"context"
	"io"
	"path"
	"runtime"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// bring makes sure that the volume has our program, no matter what the image is.
// It is copied through the engine, into the volume of a container that need not
// run, and is root's there: no outpost can change it. A mark names the copy, so
// another release of litterbox brings its own.
func (s *session) bring(ctx context.Context) error {
	program, err := s.engine.Program(runtime.GOARCH)
	if err != nil {
		return err
	}
	mark := "program/" + program.ID
	_, err = s.client.ContainerStatPath(ctx, s.order.Machine.Name, client.ContainerStatPathOptions{Path: home + "/" + mark})
	if err == nil {
		return nil
	}
	if !cerrdefs.IsNotFound(err) {
		return s.sealed(err, "cannot look into the container "+s.order.Machine.Name)
	}
	f, err := program.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	read, write := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		write.CloseWithError(pack(write, f, program.Size, mark))
	}()
	_, err = s.client.CopyToContainer(ctx, s.order.Machine.Name, client.CopyToContainerOptions{DestinationPath: home, Content: read, CopyUIDGID: false})
	_ = read.Close() // ends the packing when the engine has had enough
	<-packed
	if err != nil {
		return s.sealed(err, "cannot copy the program into the container "+s.order.Machine.Name)
	}
	return nil
}

// pack writes the initial content of a volume.
func pack(w io.Writer, f io.Reader, size int64, mark string) error {
	t := tar.NewWriter(w)
	for _, one := range []tar.Header{
		{Name: path.Base(state) + "/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: 1000, Gid: 1000},
		{Name: "program/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "program/" + path.Base(outpostPath), Typeflag: tar.TypeReg, Mode: 0o755, Size: size},
		{Name: mark, Typeflag: tar.TypeReg, Mode: 0o444}, // last: the program is whole
	} {
		if err := t.WriteHeader(&one); err != nil {
			return err
		}
		if one.Size == 0 {
			continue
		}
		if _, err := io.Copy(t, f); err != nil {
			return err
		}
	}
	return t.Close()
}
