package soak_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// box is a sandbox that may exist, and what its branch must hold. Its
// operations follow each other; those of others go on at the same time.
type box struct {
	*program.Host
	name string
	far  *program.Elsewhere // its machine; nil for this one

	mu     sync.Mutex
	exists bool
	paused bool
	landed bool // some of its work is in the checkout, so squashing it again would conflict
	serial int
	// holds are the contents that the file may have on the branch: one, or two
	// after a command whose client was killed.
	holds []string
	// snapshots are those that restore may return to, oldest first.
	snapshots []snapshot
	golden    bool // there is one of its name
	shells    int  // that its live environment has had; 0: there is none
}

// snapshot is the content of the file when it was taken.
type snapshot struct{ name, holds string }

// operations lists the operations and how often each is chosen.
var operations = []struct {
	name   string
	weight int
	do     func(*box, *rand.Rand)
}{
	{"exec", 30, (*box).exec},
	{"write", 10, (*box).write},
	{"read", 10, (*box).read},
	{"milestone", 4, (*box).milestone},
	{"diff and log", 4, (*box).look},
	{"apply", 3, (*box).apply},
	{"merge", 2, (*box).merge},
	{"stop", 4, (*box).stop},
	{"start", 3, (*box).start},
	{"pause", 4, (*box).pause},
	{"limits", 3, (*box).limits},
	{"service", 5, (*box).service},
	{"delete", 4, (*box).remove},
	{"snapshot", 4, (*box).snapshot},
	{"restore", 3, (*box).restore},
	{"rewind", 2, (*box).rewind},
	{"fork", 3, (*box).fork},
	{"golden", 3, (*box).buildGolden},
	{"environment", 5, (*box).environment},
	{"kill client", 6, (*box).killClient},
	{"kill keeper", 5, (*box).killKeeper},
	{"kill guest", 5, (*box).killGuest},
}

// step carries out one operation and returns which.
func (b *box) step(random *rand.Rand) string {
	if !b.exists {
		b.create()
		return "create"
	}
	total := 0
	for _, o := range operations {
		total += o.weight
	}
	at := random.IntN(total)
	for _, o := range operations {
		if at -= o.weight; at < 0 {
			if o.name != "delete" {
				b.settle()
			}
			o.do(b, random)
			return o.name
		}
	}
	panic("the weights do not add up")
}

// ok runs litterbox, which must succeed, and reports whether it did.
func (b *box) ok(args ...string) bool {
	got := b.Litterbox(args...)
	if got.Code != 0 {
		b.Errorf("litterbox %q exited %d:\n%s%s", args, got.Code, got.Stdout, got.Stderr)
	}
	return got.Code == 0
}

// settle lets a paused sandbox go on.
func (b *box) settle() {
	if b.paused {
		b.paused = false
		b.ok("resume", b.name)
	}
}

// verify compares the branch with what was acknowledged.
func (b *box) verify() {
	if b.holds == nil || !b.exists {
		return
	}
	got := b.show(b.name)
	if !slices.Contains(b.holds, strings.TrimSpace(got.Stdout)) {
		b.Errorf("%s holds %q (%s), want one of %q", b.name, got.Stdout, strings.TrimSpace(got.Stderr), b.holds)
	}
}

// show reads the sandbox's file in a commit. The user's git gc, which merges
// start, and ours replace packs meanwhile: a git that is just reading may find
// neither, and then it says so. It is run again.
func (b *box) show(revision string) program.Result {
	for try := 1; ; try++ {
		got := b.Command(b.Repo, "git", "show", revision+":"+b.file())
		if got.Code == 0 || try == 3 {
			return got
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// file is of this sandbox only, so that merges do not conflict.
func (b *box) file() string { return "soak/" + b.name }

// next returns what the next change writes.
func (b *box) next() string {
	b.serial++
	return fmt.Sprintf("%s %d", b.name, b.serial)
}

func (b *box) create() {
	if b.ok("create", b.name) {
		b.exists, b.paused, b.landed, b.holds, b.snapshots = true, false, false, nil, nil
	}
}

func (b *box) script(content string) string {
	return fmt.Sprintf("mkdir -p soak && echo %s >%s", content, b.file())
}

func (b *box) exec(random *rand.Rand) {
	content := b.next()
	script := b.script(content)
	if random.IntN(3) == 0 { // something that outlives the command
		script += "; sleep 1000 >/dev/null 2>&1 &"
	}
	if b.ok("exec", b.name, "--", "/bin/sh", "-c", script) {
		b.holds = []string{content}
	}
	b.verify()
}

func (b *box) write(*rand.Rand) {
	content := b.next()
	cmd := exec.Command(b.Program("litterbox"), "write", b.name, b.file())
	cmd.Dir, cmd.Env, cmd.Stdin = b.Repo, b.Env, strings.NewReader(content+"\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		b.Errorf("write: %v\n%s", err, output)
		return
	}
	b.holds = []string{content}
	b.verify()
}

func (b *box) read(*rand.Rand) {
	if len(b.holds) != 1 {
		return
	}
	got := b.Litterbox("read", b.name, b.file())
	if got.Code != 0 || strings.TrimSpace(got.Stdout) != b.holds[0] {
		b.Errorf("read %s: %+v, want %q", b.name, got, b.holds[0])
	}
}

func (b *box) milestone(*rand.Rand) {
	if b.holds != nil && !b.landed {
		b.exec(rand.New(rand.NewPCG(1, 1))) // a milestone needs something since the last
		b.ok("milestone", b.name, "-m", "Milestone of "+b.name)
		b.verify()
	}
}

func (b *box) look(*rand.Rand) {
	for _, verb := range []string{"diff", "log", "status"} {
		b.ok(verb, b.name)
	}
}

// merging serializes merges into the one checkout.
var merging sync.Mutex

func (b *box) apply(*rand.Rand) { b.home("apply") }

func (b *box) merge(*rand.Rand) {
	if b.home("merge", "--stop") { // commands have left processes running
		b.exists, b.paused, b.holds = false, false, nil
	}
}

// home takes the work into the checkout.
func (b *box) home(verb string, flags ...string) bool {
	if b.holds == nil {
		return false
	}
	merging.Lock()
	defer merging.Unlock()
	if !b.ok(append([]string{verb, b.name}, flags...)...) {
		return false
	}
	b.landed = true
	if got := b.show("HEAD"); !slices.Contains(b.holds, strings.TrimSpace(got.Stdout)) {
		b.Errorf("%s %s: %+v, want one of %q", verb, b.name, got, b.holds)
	}
	return true
}

func (b *box) stop(*rand.Rand)  { b.ok("stop", b.name) }
func (b *box) start(*rand.Rand) { b.ok("start", b.name) }

func (b *box) pause(*rand.Rand) {
	b.ok("start", b.name)
	if b.ok("pause", b.name) {
		b.paused = true
		// It says so, with what to type.
		if got := b.Inside(b.name, "true"); got.Code != 125 || !strings.Contains(got.Stderr, "litterbox resume") {
			b.Errorf("exec in paused %s: %+v", b.name, got)
		}
	}
}

func (b *box) limits(random *rand.Rand) {
	b.ok("limits", b.name, fmt.Sprintf("memory=%dMiB", 512+random.IntN(512)))
}

func (b *box) service(*rand.Rand) {
	if !b.ok("service", b.name, "restart") {
		return
	}
	var ports []struct {
		Host int `json:"host"`
	}
	listed := b.Litterbox("ports", b.name, "--json")
	if err := json.Unmarshal([]byte(listed.Stdout), &ports); err != nil || len(ports) != 1 {
		b.Errorf("ports of %s: %+v", b.name, listed)
		return
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Host))
	if err != nil {
		b.Errorf("the service of %s: %v", b.name, err)
		return
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "it works" {
		b.Errorf("the service of %s answers %q, %v", b.name, body, err)
	}
}

func (b *box) remove(*rand.Rand) {
	b.verify()
	if b.ok("delete", "--force", b.name) {
		b.exists, b.paused, b.holds = false, false, nil
	}
}

// snapshotsKept bounds the snapshots of one sandbox.
const snapshotsKept = 4

func (b *box) snapshot(random *rand.Rand) {
	b.exec(random) // its content is certain then
	if random.IntN(2) == 0 {
		b.ok("stop", b.name)
	}
	var taken struct{ Name string }
	got := b.Litterbox("snapshot", b.name, "--json")
	if err := json.Unmarshal([]byte(got.Stdout), &taken); got.Code != 0 || err != nil {
		b.Errorf("snapshot of %s: %+v, %v", b.name, got, err)
		return
	}
	b.snapshots = append(b.snapshots, snapshot{taken.Name, b.holds[0]})
	if len(b.snapshots) > snapshotsKept {
		b.ok("snapshot", "delete", b.name, b.snapshots[0].name)
		b.snapshots = b.snapshots[1:]
	}
}

// restore returns to a snapshot. Work that is in the checkout already is not
// taken back: merging what comes after it would conflict.
func (b *box) restore(random *rand.Rand) {
	if len(b.snapshots) == 0 || b.landed {
		return
	}
	to := b.snapshots[random.IntN(len(b.snapshots))]
	if !b.ok("restore", b.name, to.name, "--stop") {
		return
	}
	b.holds = []string{to.holds}
	b.verify()
	b.read(random)
}

func (b *box) rewind(random *rand.Rand) {
	if b.landed {
		return
	}
	b.exec(random)
	back := b.holds
	var log []struct{ Number int }
	got := b.Litterbox("log", b.name, "--json")
	if err := json.Unmarshal([]byte(got.Stdout), &log); got.Code != 0 || err != nil || len(log) == 0 {
		b.Errorf("log of %s: %+v, %v", b.name, got, err)
		return
	}
	b.exec(random)
	if b.ok("rewind", b.name, fmt.Sprint(log[len(log)-1].Number), "--stop") {
		b.holds = back
		b.verify()
		b.read(random)
	}
}

// fork makes a second sandbox with the same content, and deletes it.
func (b *box) fork(random *rand.Rand) {
	b.exec(random)
	other := &box{Host: b.Host, far: b.far, name: b.name + "-fork", exists: true, serial: 1000}
	if !b.ok("fork", b.name, other.name) {
		return
	}
	if got := b.Litterbox("read", other.name, b.file()); got.Code != 0 || strings.TrimSpace(got.Stdout) != b.holds[0] {
		b.Errorf("the fork %s: %+v, want %q", other.name, got, b.holds[0])
	}
	other.exec(random)
	b.read(random)
	other.remove(random)
}
