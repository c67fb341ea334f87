package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// mergeInside brings HEAD of the git inside to the new base: forward where the
// agent has made no commits of its own, and by a merge commit where it has. The
// files have followed already, so only HEAD and index move; staged changes stay
// staged. Its arguments are the new base and a message.
const mergeInside = `
head=$(git rev-parse --verify -q 'HEAD^{commit}') || exit 10
[ "$(git rev-parse --verify -q refs/litterbox/base)" = "$1" ] && git merge-base --is-ancestor "$1" "$head" && exit 0
git update-ref refs/litterbox/base "$1" || exit 11
git merge-base --is-ancestor "$1" "$head" && exit 0
if git merge-base --is-ancestor "$head" "$1"; then
	new=$1
else
	tree=$(git merge-tree --write-tree --no-messages "$head" "$1" | head -n 1)
	[ -n "$tree" ] && new=$(git commit-tree "$tree" -p "$head" -p "$1" -m "$2") || exit 12
fi
git read-tree -m "$head" "$new" || git read-tree --reset "$new" || exit 13
git update-ref -m "litterbox update" HEAD "$new" "$head" || exit 14
git update-index -q --refresh || :
`

// innerPatience bounds what git inside may take for that.
const innerPatience = 2 * time.Minute

// updateInnerGit gives the git inside what the new base reaches and its old one
// does not, and nothing else of this repository, and moves its HEAD. A failure is a
// note: files and branch are where they belong.
func (e *Engine) updateInnerGit(ctx context.Context, p *place) {
	if p.record.Onto == "" {
		return
	}
	if err := e.innerBase(ctx, p); err != nil {
		p.note("git inside does not know the new base: " + err.Error() + "; litterbox update " + p.record.Name + " tries it again")
	}
}

// gitInside runs a shell script on the git inside, and gives the first bytes of its
// output. The output may say anything: the sandbox is not trusted.
func (e *Engine) gitInside(ctx context.Context, p *place, script string, args ...string) (string, error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	argv := [][]byte{[]byte("sh"), []byte("-c"), []byte(script), []byte("sh")}
	for _, arg := range args {
		argv = append(argv, []byte(arg))
	}
	var said bytes.Buffer
	exit, err := wire.Run(ctx, stream, wire.Exec{Argv: argv, Timeout: innerPatience},
		wire.Streams{Stdin: strings.NewReader(""), Stdout: &limitedBuffer{&said, 4 << 10}, Stderr: io.Discard})
	if err == nil && exit.Code != 0 {
		err = fault.New(fault.Unavailable, "git in the sandbox ended with %d", exit.Code)
	}
	return strings.TrimSpace(said.String()), err
}

// innerHas is the base that the git inside says it has, where the new one descends
// from it; else that of the layers.
func (e *Engine) innerHas(ctx context.Context, p *place) (string, error) {
	said, err := e.gitInside(ctx, p, "git rev-parse --verify -q refs/litterbox/base")
	if err != nil || !git.IsOid(said) {
		return p.record.Base, err
	}
	if leads, err := p.repo.IsAncestor(ctx, said, p.record.Onto); err != nil || !leads {
		return p.record.Base, nil //nolint:nilerr // an object that this repository does not have
	}
	return said, nil
}

func (e *Engine) innerBase(ctx context.Context, p *place) (err error) {
	dir := p.path("follow")
	if err := hostile.Remove(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot clear %q", dir)
	}
	defer func() { err = errors.Join(err, hostile.Remove(dir)) }()
	has, err := e.innerHas(ctx, p)
	if err != nil {
		return err
	}
	if has != p.record.Onto {
		files, err := branch.PackBase(ctx, p.repo, p.quarantine(), dir, p.record.Onto, has)
		if err != nil {
			return err
		}
		if err := e.sendPack(ctx, p, files); err != nil {
			return err
		}
	}
	if _, err := e.gitInside(ctx, p, mergeInside, p.record.Onto, "Merge "+p.record.OntoRef); err != nil {
		return err
	}
	return e.takeInnerMerge(ctx, p)
}

// sendPack puts a pack and its index into the git directory inside.
func (e *Engine) sendPack(ctx context.Context, p *place, files []string) error {
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	return sendArchive(ctx, stream, ".git/objects/pack", func(to io.Writer) error {
		w := tar.NewWriter(to)
		for _, file := range files {
			if err := archiveOneOf(w, file); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

func archiveOneOf(w *tar.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: info.Name(), Size: info.Size(), Mode: 0o444, Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = io.Copy(w, file)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot copy %q", name)
	}
	return nil
}

// takeInnerMerge records the new HEAD inside as taken: the merge is on the branch
// already.
func (e *Engine) takeInnerMerge(ctx context.Context, p *place) error {
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	head, err := wire.FindHead(ctx, stream)
	if err != nil || head.Commit == "" || head.Damage != "" {
		return err
	}
	have, err := branch.InnerHead(ctx, p.repo, p.deltaFile(), p.record.Branch)
	if err != nil || head.Commit == have {
		return err
	}
	if head.Commit != p.record.Onto {
		received, err, _ := e.receiveSince(ctx, p, head.Commit, have, p.record.Onto)
		if err != nil {
			return err
		}
		received.Drop()
	}
	return branch.SetInnerHead(ctx, p.repo, p.deltaFile(), p.record.Branch, head.Commit)
}
