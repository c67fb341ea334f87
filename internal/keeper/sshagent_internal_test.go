package keeper

import (
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sshagent"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// A signature without an answer is refused, and the next look at the signatures
// tells so: its command can then name what it waited for. An answered one is not
// told, and only the last are kept.
func TestSignaturesThatComeTooLate(t *testing.T) {
	k := &keeper{base: t.Context(), store: &store.Store{Root: t.TempDir()}, net: &network{askers: &askers{changed: func() {}}}}
	k.signer = &signer{k: k, patience: time.Hour}
	allowed := make(chan bool)
	go func() {
		_, yes := k.signer.ask(t.Context(), "log in", sshagent.Request{Key: "SHA256:x"})
		allowed <- yes
	}()
	for len(k.signatures().Waiting) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := k.sign("1", true); err != nil {
		t.Fatal(err)
	}
	if !<-allowed {
		t.Error("the answer was lost")
	}
	if late := k.signatures().Late; len(late) != 0 {
		t.Errorf("late are %+v", late)
	}
	k.signer.patience = 0
	for range maxSignatures + 3 {
		if answered, allowed := k.signer.ask(t.Context(), "sign", sshagent.Request{}); answered || allowed {
			t.Error("it is signed without an answer")
		}
	}
	found := k.signatures()
	if len(found.Waiting) != 0 || len(found.Late) != maxSignatures || found.Late[maxSignatures-1].ID != maxSignatures+4 {
		t.Errorf("%+v", found)
	}
}
