package secret

import (
	"crypto/rand"
	"encoding/base64"
	"math/big"
	"strings"
	"unsafe"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Bounds of values.
const (
	// Shortest is the least length of a value: a shorter one turns up in ordinary
	// text by chance, and would be replaced there.
	Shortest = 8
	// Longest is the greatest length. Hosts refuse larger headers.
	Longest = 16 << 10
)

// leastRandom is how many characters of a placeholder are random at least.
const leastRandom = 12

// CheckValue reports why a value cannot be used. The error does not show the
// value.
func CheckValue(value []byte) error {
	refuse := func(cause string) error { return fault.New(fault.Invalid, "cannot use the value: %s", cause) }
	switch {
	case len(value) == 0:
		return refuse("it is empty")
	case len(value) < Shortest:
		return refuse("it is shorter than 8 bytes, and would be found in ordinary text")
	case len(value) > Longest:
		return refuse("it is longer than 16 KiB")
	}
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			return refuse("it has more than one line, or a control character")
		}
	}
	return nil
}

// TrimValue removes the line end that files and commands leave after a value.
func TrimValue(value []byte) []byte {
	for len(value) > 0 && (value[len(value)-1] == '\n' || value[len(value)-1] == '\r') {
		value = value[:len(value)-1]
	}
	return value
}

// prefixes begin values whose clients check for them. The part that the longest
// match covers is not secret, and is in the placeholder too.
var prefixes = []string{
	"sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-sid01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-",
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "gldt-", "glcbt-",
	"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "npm_", "pypi-", "AIza", "ya29.", "1//", "GOCSPX-", "hf_", "gsk_", "xai-", "pplx-", "r8_",
	"sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_", "whsec_", "AKIA", "ASIA", "dop_v1_", "SG.", "dckr_pat_", "lin_api_", "ntn_", "secret_",
	"shpat_", "shpss_", "sq0atp-", "EAAA", "PMAK-", "figd_", "vercel_", "sntrys_", "glsa_", "hvs.", "tskey-", "fo1_", "nvapi-", "cargo_", "rt_",
}

// Placeholder makes up a stand-in for a value inside: a new one for each call,
// with the traits that clients check. These are its length, its characters' kinds
// and a public prefix; of a JSON web token all but the signature, because clients
// read who they are and until when from it; of a UUID the dashes. A value that
// leaves too little to make up gets a longer placeholder.
func Placeholder(value []byte) (string, error) {
	if err := CheckValue(value); err != nil {
		return "", err
	}
	text := view(value)
	public, ok := tokenClaims(text)
	for _, prefix := range prefixes {
		if !ok && len(prefix) > len(public) && strings.HasPrefix(text, prefix) && len(text)-len(prefix) >= leastRandom {
			public = prefix
		}
	}
	for range 100 {
		made, err := makeUp(public, text[len(public):])
		if err != nil || apart(made, text, len(public)) {
			return made, err
		}
	}
	return "", fault.New(fault.Internal, "cannot make up a placeholder that differs enough from the value")
}

// Stands reports whether a placeholder shows what clients read from a value: the
// claims of a JSON web token, which change with each one. Nothing else is read.
func Stands(placeholder string, value []byte) bool {
	claims, _ := tokenClaims(view(value))
	return placeholder != "" && strings.HasPrefix(placeholder, claims)
}

// apart reports whether replacing a value by made can never form the value again:
// made does not begin with the end of the value, as far as that differs from the
// value's own beginning.
func apart(made, value string, public int) bool {
	for n := public + 1; n < len(value); n++ {
		if strings.HasPrefix(made, value[len(value)-n:]) {
			return false
		}
	}
	for n := 1; n <= public; n++ {
		if strings.HasPrefix(made, value[len(value)-n:]) && !strings.HasPrefix(value, value[len(value)-n:]) {
			return false
		}
	}
	return !strings.Contains(value, made) && !strings.Contains(made, value)
}

// view is a value as text, without a copy that could not be wiped.
func view(value []byte) string { return unsafe.String(unsafe.SliceData(value), len(value)) }

// tokenClaims is a JSON web token without its signature.
func tokenClaims(text string) (string, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || !strings.HasPrefix(text, "eyJ") || len(parts[2]) < leastRandom {
		return "", false
	}
	for _, part := range parts {
		if _, err := base64.RawURLEncoding.DecodeString(part); err != nil {
			return "", false
		}
	}
	return text[:len(text)-len(parts[2])], true
}

const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// makeUp gives public with as many other characters as hidden has, of the kinds
// that hidden has. Characters that would need an encoding anywhere never occur,
// so that a placeholder looks the same in a URL, in JSON and in a form.
func makeUp(public, hidden string) (string, error) {
	alphabet := ""
	for _, kind := range []string{digits, lower, upper} {
		if strings.ContainsAny(hidden, kind) {
			alphabet += kind
		}
	}
	keep := "" // stays where it is
	switch hex := strings.ContainsAny(hidden, digits) && alphabet != digits; {
	case hex && strings.Trim(hidden, digits+"abcdef-") == "":
		alphabet, keep = digits+"abcdef", "-"
	case hex && strings.Trim(hidden, digits+"ABCDEF-") == "":
		alphabet, keep = digits+"ABCDEF", "-"
	case alphabet == "":
		alphabet = lower
	}
	var b strings.Builder
	b.WriteString(public)
	random := 0
	for i := 0; i < len(hidden) || random < leastRandom; i++ {
		if i < len(hidden) && strings.IndexByte(keep, hidden[i]) >= 0 {
			b.WriteByte(hidden[i])
			continue
		}
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "cannot make up a placeholder")
		}
		b.WriteByte(alphabet[n.Int64()])
		random++
	}
	return b.String(), nil
}
