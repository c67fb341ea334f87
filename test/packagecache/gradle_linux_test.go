package packagecache_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Gradle builds inside, without a network, from what it has downloaded on the host.
func TestGradle(t *testing.T) {
	program.Need(t, "/usr/bin/gradle", "/usr/bin/javac", "/usr/bin/jar")
	h := built.New(t)
	h = h.With("PATH=/usr/bin:/bin", "GRADLE_OPTS=-Duser.home="+h.Home) // Java asks the system for it, not HOME
	registry := filepath.Join(h.Dir, "registry")
	h.Put(filepath.Join(registry, "G.java"), "package greeting;\npublic class G { public static String text() { return \"from the host's cache\"; } }\n")
	version := filepath.Join(registry, "greeting/greeting/1.0/greeting-1.0")
	h.Put(version+".pom", "<project><modelVersion>4.0.0</modelVersion><groupId>greeting</groupId><artifactId>greeting</artifactId><version>1.0</version></project>\n")
	if got := h.Command(registry, "/bin/sh", "-c", "javac -d out G.java && jar cf "+version+".jar -C out ."); got.Code != 0 {
		t.Fatal(got.Stdout + got.Stderr)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(registry)))
	h.Put(filepath.Join(h.Repo, "build.gradle"), "apply plugin: 'application'\nmainClassName = 'M'\nrepositories { maven { url '"+server.URL+"' } }\ndependencies { compile 'greeting:greeting:1.0' }\n")
	h.Put(filepath.Join(h.Repo, "settings.gradle"), "")
	h.Put(filepath.Join(h.Repo, "src/main/java/M.java"), "public class M { public static void main(String[] a) { System.out.println(greeting.G.text()); } }\n")
	h.Put(filepath.Join(h.Repo, ".gitignore"), "build/\n.gradle/\n")
	got := h.Shell("gradle --no-daemon -q run")
	server.Close()
	if got.Code != 0 {
		t.Fatalf("the host's gradle exits %d: %s", got.Code, got.Stdout+got.Stderr)
	}
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "in Java")
	cache := filepath.Join(h.Home, ".gradle/caches/modules-2")
	before := modules(t, cache)

	const run = "gradle --no-daemon --offline -q run"
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.package-caches = []\n")
	h.Must("create", "without")
	if got := h.InsideShell("without", run); got.Code == 0 {
		t.Errorf("without the cache gradle prints %q", got.Stdout)
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "")
	h.Must("create", "box")
	if got := h.InsideShell("box", run); got.Code != 0 || got.Stdout != "from the host's cache\n" {
		t.Errorf("gradle inside exits %d and prints %q: %s", got.Code, got.Stdout, got.Stderr)
	}
	same(t, before, modules(t, cache))
}
