package intercept

import (
	"crypto/x509"
	"testing"
	"time"
)

// A clock that is set forward or back must not leave certificates that do not
// verify.
func TestCertificatesByTheTimeOfDay(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.mint("example.org")
	if err != nil {
		t.Fatal(err)
	}
	leafCertificate, err := x509.ParseCertificate(made.config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	for _, c := range []struct {
		jump            time.Duration
		authority, leaf bool
	}{
		{0, true, true},
		{24*time.Hour - time.Minute, true, true},
		{-23 * time.Hour, true, true},
		{-48 * time.Hour, true, false},
		{80 * 24 * time.Hour, true, false},
		{year, true, false},
		{9 * year, true, false},
		{-9 * year, true, false},
		{11 * year, false, false},
		{-11 * year, false, false},
	} {
		now := today().Add(c.jump)
		if got := a.fresh(now); got != c.authority {
			t.Errorf("after %v the authority is fresh: %t, want %t", c.jump, got, c.authority)
		}
		if got := made.fresh(now); got != c.leaf {
			t.Errorf("after %v the certificate is fresh: %t, want %t", c.jump, got, c.leaf)
		}
		if !c.leaf {
			continue // another one is made
		}
		if _, err := leafCertificate.Verify(x509.VerifyOptions{DNSName: "example.org", Roots: roots, CurrentTime: now}); err != nil {
			t.Errorf("after %v: %v", c.jump, err)
		}
	}
}
