package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// FuzzTrustRecord puts anything into the record of the human's trust: a damaged
// one trusts nothing, and new trust can be granted in it.
func FuzzTrustRecord(f *testing.F) {
	good, err := seal.Encode(map[string]any{"version": 1, "repositories": map[string]string{"/r/.git": "sha256:1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	for _, text := range []string{"", "{}", "null", `{"version":1}`, `{"version":99}`, `{"version":1,"repositories":null}`, `{"version":1,"repositories":{"/other":"sha256:2"}}`, `[`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		trust := config.Trust{File: filepath.Join(t.TempDir(), "trust.json")}
		if err := os.WriteFile(trust.File, content, 0o600); err != nil {
			t.Fatal(err)
		}
		const other, hash = "/other", "sha256:2"
		was, err := trust.Trusted(other, hash)
		if err != nil {
			if fault.KindOf(err) != fault.Unsupported || was {
				t.Errorf("%q: %t, %v", content, was, err)
			}
			return
		}
		if err := trust.Grant(t.Context(), "/mine", hash); err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		mine, err := trust.Trusted("/mine", hash)
		theirs, err2 := trust.Trusted(other, hash)
		if err != nil || err2 != nil || !mine || theirs != was {
			t.Errorf("%q: granted %t (%v), the other was %t and is %t (%v)", content, mine, err, was, theirs, err2)
		}
	})
}
