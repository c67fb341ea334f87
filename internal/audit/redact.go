package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// hashBeyond is the length in bytes from which an argument is logged as a hash.
const hashBeyond = 2 << 10

// redacted takes the place of a secret.
const redacted = "[redacted]"

// Text prepares an argument for the log: secrets redacted, and a long one as
// its beginning, length and hash.
func Text(value string, secrets ...string) string {
	if len(value) <= hashBeyond {
		return Redact(value, secrets...)
	}
	// A secret that the first cut goes through ends behind the second.
	clean := Redact(value[:hashBeyond], secrets...)
	return strings.ToValidUTF8(clean[:min(len(clean), hashBeyond/8)], "") + "… " + Digest(value)
}

// Digest stands for content that does not belong into a log.
func Digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf("[%d bytes, sha256 %s]", len(content), hex.EncodeToString(sum[:]))
}

// Redact takes out what looks like a secret, and every one of secrets.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) >= 8 { // a short one would take half of the text with it
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	if !suspicious(text) {
		return text
	}
	for _, p := range patterns() {
		text = p.ReplaceAllString(text, "${1}"+redacted+"${2}")
	}
	return text
}

// suspicious tells whether any of the patterns may match: looking for words is
// some forty times as fast, and nearly all of what a command prints has none.
func suspicious(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return true // letters fold in ways that words do not
		}
	}
	lower := strings.ToLower(text)
	for _, word := range []string{
		"token", "secret", "passw", "passphrase", "key", "credential", "authorization", "bearer", "://",
		"gh", "glpat-", "xox", "npm_", "pypi-", "sk-", "sk_", "rk_", "akia", "asia", "aiza", "ya29.", "hf_", "dop_v1_", "eyj",
	} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// SecretName tells whether a variable of this name is taken for a secret.
func SecretName(name string) bool { return namePattern().MatchString(name) }

const secretWords = `(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)`

// They are compiled when first needed: version and help never do.
var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)` + secretWords) })

// patterns are the shapes of secrets; what groups 1 and 2 hold stays.
var patterns = sync.OnceValue(func() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, text := range []string{
		// NAME=value, "name": "value", --name value, for names that speak of secrets
		`(?i)([\w.-]*` + secretWords + `[\w.-]*["']?\s*[=:]\s*["']?)[^\s"'&;|]+`,
		`(?i)(--?[\w-]*(?:token|secret|password|passwd|passphrase|api-?key)\s+["']?)[^\s"'&;|]+`,
		`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?\s*)[\w.~+/=-]+`,
		`(?i)(\bbearer\s+)[\w.~+/=-]{8,}`,
		`(\w+://[^\s/:@"']+:)[^\s/@"']+(@)`, // userinfo in a URL
		`()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abposr]-|npm_|pypi-|sk-|sk_live_|rk_live_|AKIA|ASIA|AIza|ya29\.|hf_|dop_v1_)[\w.-]{8,}`,
		`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`, // a JSON web token
		`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	} {
		all = append(all, regexp.MustCompile(text))
	}
	return all
})
