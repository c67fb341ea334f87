package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Keys are the two key pairs of one sandbox: private keys as OpenSSH PEM,
// public keys as authorized_keys lines.
type Keys struct {
	HostPrivate, HostPublic   []byte // the keeper's
	GuestPrivate, GuestPublic []byte
}

// NewKeys makes the keys of a new sandbox.
func NewKeys() (Keys, error) {
	hostPrivate, hostPublic, err := newKey("litterbox-keeper")
	if err != nil {
		return Keys{}, err
	}
	guestPrivate, guestPublic, err := newKey("litterbox-guest")
	if err != nil {
		return Keys{}, err
	}
	return Keys{hostPrivate, hostPublic, guestPrivate, guestPublic}, nil
}

// newKey makes a key on the curve P-256. Go carries its tables along; those of
// Ed25519 are computed again in each process that uses it, which takes longer (1
// ms) than the rest of a handshake.
func newKey(comment string) (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "cannot make a key")
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "cannot make a key")
	}
	sshPub, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "cannot make a key")
	}
	return pem.EncodeToMemory(block), ssh.MarshalAuthorizedKey(sshPub), nil
}
