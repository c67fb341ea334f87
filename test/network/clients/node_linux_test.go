package clients_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// holding is a program for Node that asks a host with a secret, keeps the answer
// on its heap, says that it has it, and waits.
const holding = `
const kept = [["control", "of", "the", "heap"].join("-").repeat(100)];
const told = await fetch(process.argv[2], {headers: {"X-Key": process.env.FROM_ENV}, method: "POST", body: process.env.FROM_COMMAND});
kept.push(await told.text(), process.env.FROM_ENV);
if (!kept[1].includes(process.env.FROM_ENV)) throw new Error("the echo has no placeholder: " + kept[1]);
(await import("node:fs")).writeFileSync("/tmp/held", "");
setInterval(() => kept.length, 1000);
`

// The heap of a Node that has used secrets, and a core dump of it, hold no value.
func TestSecretsInNode(t *testing.T) {
	t.Parallel()
	world.Need(t, "node")
	h, site, values := secretsHost(t, "node")
	h.Must("create", "box")
	for name, content := range map[string]string{"search.py": search, "holding.mjs": holding} {
		h.Put(h.Dir+"/"+name, content)
		if got := h.Shell(h.Program("litterbox") + " write box " + name + " <" + h.Dir + "/" + name); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
	}
	const control = "control-of-the-heap"
	var texts []string
	for _, value := range values {
		texts = append(texts, searched(value)...)
	}
	args := []string{"exec", "box", "--no-commit", "--", "sh", "-c", `top=$PWD; cd /tmp && ulimit -c unlimited
		node "$top/holding.mjs" https://node.outside.example/ & pid=$!
		until test -e held; do kill -0 $pid || exit 3; sleep 0.1; done
		echo heap; python3 "$top/search.py" "$@"
		kill -ABRT $pid; wait $pid 2>/dev/null
		test -n "$(ls core* 2>/dev/null)" || { echo no core dump; exit; }
		echo core; python3 "$top/search.py" "$@"`, "sh"}
	for _, text := range append(texts, control) {
		args = append(args, reversed(text))
	}
	got := h.Litterbox(args...)
	if got.Code != 0 {
		t.Fatalf("%d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	for line := range strings.Lines(got.Stdout) {
		if number, where, found := strings.Cut(strings.TrimSpace(line), " "); found && where != "core dump" && number != fmt.Sprint(len(texts)) {
			t.Errorf("a value is in the %s (form %s)", where, number)
		}
	}
	found := fmt.Sprintf("%d ", len(texts))
	heap, core, _ := strings.Cut(got.Stdout, "core\n")
	if !strings.Contains(heap, found+"memory\n") {
		t.Errorf("the search does not find its control on the heap: %q", got.Stdout)
	}
	if !site.has("X-Key: " + values["FROM_ENV"]) {
		t.Error("its host was not told; the test shows nothing")
	}
	if pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil || bytes.ContainsAny(pattern, "/|@") {
		t.Skipf("core dumps are not files of the working directory on this machine: %q (%v)", pattern, err)
	}
	if !strings.Contains(core, found+"file\n") {
		t.Errorf("the search does not find its control in the core dump: %q", got.Stdout)
	}
}
