package engine

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// SpawnRequest asks for several sandboxes that begin alike.
type SpawnRequest struct {
	Dir      string
	Count    int
	From     string // a sandbox that they are forks of, or a golden; empty: the checkout's HEAD
	Parallel int    // how many are made at once; 0: one after the other
	// Machines are those that the workers are spread over; none: where the
	// configuration says.
	Machines []string
	// Create completes the request for one that begins with the checkout: its
	// review, and where its set-up prints. Nil leaves it plain.
	Create func(*CreateRequest)
	// Each is called when one is made or has failed, one call at a time; nil: no
	// one is told.
	Each func(Spawned)
}

// Spawned is the result of one worker.
type Spawned struct {
	Name  string
	Info  Info // zero after an error
	Notes []string
	Err   error
	// NotBegun says that it was not even tried, because the command was ended.
	NotBegun bool
}

// maxWorkers bounds how many one call makes.
const maxWorkers = 1000

// Spawn makes sandboxes that are called after the project and numbered,
// <project>-worker-1 and so on, with the lowest numbers that are free. A failure
// stops no other: its error is in its result.
func (e *Engine) Spawn(ctx context.Context, request SpawnRequest) ([]Spawned, error) {
	if request.Count < 1 || request.Count > maxWorkers {
		return nil, fault.New(fault.Invalid, "cannot make %d workers: between 1 and %d", request.Count, maxWorkers).
			WithHint("litterbox spawn 3")
	}
	repo, err := e.memory().Open(ctx, request.Dir)
	if err != nil {
		return nil, err
	}
	taken, err := e.Store.Names(repo.CommonDir)
	if err != nil {
		return nil, err
	}
	numbers := &workerNumbers{prefix: workerPrefix(repo.Top), taken: taken}
	golden := ""
	if request.From != "" {
		if golden, err = e.goldenFrom(repo.CommonDir, request.From, taken); err != nil {
			return nil, err
		}
		if golden == "" && len(request.Machines) > 0 {
			return nil, fault.New(fault.Invalid, "cannot spread forks of sandbox %q over machines: a fork is where its sandbox is", request.From).
				WithHint("litterbox spawn %d --from %s", request.Count, request.From)
		}
		if golden == "" {
			return e.spawnForks(ctx, request, numbers)
		}
	}
	dirty, err := repo.Dirty(ctx)
	if err != nil {
		return nil, err
	}
	placing, err := e.Placing(ctx, request.Machines)
	if err != nil {
		return nil, err
	}
	if placing != nil {
		e.say(placing.Notes)
	}
	return e.spawnEach(ctx, request, func(ctx context.Context) Spawned {
		on := placing.Take()
		return numbers.until(ctx, func(name string, number int) Spawned {
			create := CreateRequest{Dir: request.Dir, Name: name, Golden: golden}
			if request.Create != nil {
				request.Create(&create)
			}
			if on != "" {
				create.Driver = on
			}
			worker := func(repo *git.Repository) *sandbox.Worker {
				return &sandbox.Worker{Number: number, Commit: repo.Head, Branch: strings.TrimPrefix(repo.HeadRef, git.Heads), Dirty: dirty}
			}
			made, err := e.create(ctx, create, worker, nil)
			return Spawned{Name: name, Info: made.Info, Notes: made.Notes, Err: err}
		})
	}), nil
}

// spawnEach makes the first one alone, which fills the caches and asks every
// question, and then the others.
func (e *Engine) spawnEach(ctx context.Context, request SpawnRequest, one func(context.Context) Spawned) []Spawned {
	results := make([]Spawned, request.Count)
	var mu sync.Mutex
	do := func(n int) {
		result := one(ctx)
		mu.Lock()
		defer mu.Unlock()
		if results[n] = result; request.Each != nil {
			request.Each(result)
		}
	}
	do(0)
	var group errgroup.Group
	group.SetLimit(max(request.Parallel, 1))
	for n := 1; n < request.Count; n++ {
		group.Go(func() error {
			do(n)
			return nil
		})
	}
	_ = group.Wait() // each error is in a result
	return results
}

// spawnForks makes forks of one sandbox, all from the same moment. One after the
// other: they share the sandbox's locks.
func (e *Engine) spawnForks(ctx context.Context, request SpawnRequest, numbers *workerNumbers) (results []Spawned, err error) {
	p, err := e.find(ctx, request.Dir, request.From)
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "cannot make workers of %q: neither a sandbox nor a golden of this repository has that name%s", request.From,
			didYouMean(request.From, e.sandboxNames(ctx, request.Dir))).
			WithHint("litterbox list, or litterbox golden list")
	}
	if err != nil {
		return nil, err
	}
	defer e.tell(p)
	if err := p.forks(); err != nil {
		return nil, err
	}
	ctx, call, err := e.recordIn(ctx, p, "fork", map[string]any{"new": numbers.prefix, "count": request.Count})
	if err != nil {
		return nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	begin, err := e.snapshot(ctx, p, sandbox.SnapshotFork, "")
	if err != nil {
		return nil, err
	}
	request.Parallel = 1
	results = e.spawnEach(ctx, request, func(ctx context.Context) Spawned {
		return numbers.until(ctx, func(name string, number int) Spawned {
			info, notes, err := e.forkOne(ctx, p, begin, name, &sandbox.Worker{
				Number: number, Commit: begin.Commit, Branch: p.record.Branch, From: p.record.Name,
			})
			return Spawned{Name: name, Info: info, Notes: notes, Err: err}
		})
	})
	return results, e.dropOwn(context.WithoutCancel(ctx), p, begin)
}

// workerPrefix begins the names of a project's workers.
func workerPrefix(top string) string {
	project, err := sandbox.Slug(filepath.Base(top))
	if err != nil {
		return "worker-" // a directory without a letter or digit
	}
	const room = sandbox.MaxNameLength - len("-worker-1000000")
	return strings.TrimRight(project[:min(len(project), room)], "-") + "-worker-"
}

// passedOver bounds how many numbers are tried for one worker.
const passedOver = 100

// workerNumbers gives out numbers that no sandbox of the repository has.
type workerNumbers struct {
	prefix string
	taken  map[string]string // names, which other commands may take meanwhile

	mu   sync.Mutex
	last int
}

func (w *workerNumbers) next() (name string, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		w.last++
		name = w.prefix + strconv.Itoa(w.last)
		if _, taken := w.taken[name]; !taken {
			return name, w.last
		}
	}
}

// until makes one worker; a number whose name or branch is there already is
// passed over.
func (w *workerNumbers) until(ctx context.Context, make func(name string, number int) Spawned) Spawned {
	var result Spawned
	for range passedOver {
		name, number := w.next()
		if err := ctx.Err(); err != nil {
			return Spawned{Name: name, NotBegun: true, Err: fault.New(fault.Canceled, "not begun")}
		}
		if result = make(name, number); fault.KindOf(result.Err) != fault.AlreadyExists {
			break
		}
	}
	return result
}

// forks fails where the driver cannot fork.
func (p *place) forks() error {
	if p.driver.Capabilities().Fork {
		return nil
	}
	return fault.New(fault.Unsupported, "cannot fork sandbox %q: the driver %q does not", p.record.Name, p.record.Driver)
}
