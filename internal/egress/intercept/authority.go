package intercept

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// How long certificates last. Leaves stay below what clients accept from any
// authority (398 days, CA/Browser Forum baseline requirements); an authority is
// replaced when it would not outlive a leaf. It is valid in the past, too: a
// clock that is set back must not end it, because programs inside read their
// roots only when they start.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	authorityPast = 10 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	leafRenew     = 30 * 24 * time.Hour
	clockSkew     = 24 * time.Hour // a sandbox has the host's clock; what it compares with may not
)

// maxLeaves bounds the certificates that are kept; below a wildcard a sandbox
// can invent names without end.
const maxLeaves = 256

// authority signs certificates in the name of hosts. Its key never leaves the
// host; only one sandbox trusts it.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte // the certificate alone

	mu     sync.Mutex
	leaves map[string]*leaf
}

// leaf is the certificate that answers for one host. The configuration is kept
// with it, because it holds the keys with which clients resume sessions.
type leaf struct {
	config *tls.Config
	from   time.Time
	until  time.Time
}

// fresh reports whether a certificate verifies at now, the time of day, and for
// long enough after. The clock may have been set since it was made, both ways.
func (l *leaf) fresh(now time.Time) bool { return !now.Before(l.from) && l.until.Sub(now) > leafRenew }

// fresh reports whether leaves that are signed at now verify as long as they last.
func (a *authority) fresh(now time.Time) bool {
	return !now.Before(a.certificate.NotBefore) && a.certificate.NotAfter.Sub(now) > leafLife
}

// today is the time of day alone: certificates are compared with that, not
// with the monotonic clock of this process.
func today() time.Time { return time.Now().Round(0) }

// openAuthority reads file, or makes an authority and writes it there.
func openAuthority(file string) (*authority, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		if a := parseAuthority(data); a != nil && a.fresh(today()) {
			return a, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the certificate authority of the sandbox")
	}
	a, err := newAuthority()
	if err == nil {
		err = a.save(file)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make a certificate authority for the sandbox")
	}
	return a, nil
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := today()
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-authorityPast), NotAfter: now.Add(authorityLife),
		// The serial number keeps two authorities apart in programs that find
		// issuers by name.
		Subject:  pkix.Name{CommonName: "litterbox, for one sandbox only", SerialNumber: serial.Text(16)},
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der), leaves: map[string]*leaf{}}, nil
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// save writes the authority atomically, readable only by its owner.
func (a *authority) save(file string) error {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".authority-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(encode("PRIVATE KEY", key), a.pem...))
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temporary.Name()))
	}
	return err
}

// parseAuthority returns nil for data that save has not written.
func parseAuthority(data []byte) *authority {
	first, rest := pem.Decode(data)
	if first == nil {
		return nil
	}
	second, _ := pem.Decode(rest)
	if second == nil {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(first.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil
	}
	certificate, err := x509.ParseCertificate(second.Bytes)
	if err != nil || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil
	}
	return &authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", second.Bytes), leaves: map[string]*leaf{}}
}

// config returns the configuration that answers a handshake for host, a
// canonical name or an address.
func (a *authority) config(host string) (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if have := a.leaves[host]; have != nil && have.fresh(today()) {
		return have.config, nil
	}
	made, err := a.mint(host)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves) // minting costs less than a millisecond
	}
	a.leaves[host] = made
	return made.config, nil
}

func (a *authority) mint(host string) (*leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := today()
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	if len(host) <= 64 { // the longest common name (RFC 5280, appendix A.1)
		template.Subject.CommonName = host
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &leaf{from: template.NotBefore, until: template.NotAfter, config: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"},
	}}, nil
}

// publish appends the authority's certificate to a file where programs inside
// look for roots, unless it is there. The file is already mounted inside, so it
// is never replaced, and one write(2) lets a reader see all or nothing.
func (a *authority) publish(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a sandbox from before such files were mounted
	}
	if err != nil || bytes.Contains(data, a.pem) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	addition := a.pem
	if len(data) > 0 && data[len(data)-1] != '\n' {
		addition = append([]byte{'\n'}, addition...)
	}
	if wrote, writeErr := file.Write(addition); writeErr != nil {
		err = writeErr
		if wrote > 0 { // half a certificate would spoil the whole file
			err = errors.Join(err, file.Truncate(int64(len(data))))
		}
	}
	return errors.Join(err, file.Close())
}
