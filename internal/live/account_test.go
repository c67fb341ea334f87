package live_test

import (
	"context"
	"os/user"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/live"
)

// accounts are those of a machine of the test's own.
func accounts(there ...user.User) (a live.Accounts, ran *[]string) {
	ran = &[]string{}
	return live.Accounts{
		Lookup: func(name string) (*user.User, error) {
			for _, one := range there {
				if one.Username == name {
					return &one, nil
				}
			}
			return nil, user.UnknownUserError(name)
		},
		Run: func(_ context.Context, program string, args ...string) ([]byte, error) {
			*ran = append(*ran, program+" "+strings.Join(args, " "))
			return nil, nil
		},
	}, ran
}

const makes = "useradd --system --no-log-init --no-create-home --no-user-group --gid 65534 --home-dir /nonexistent --shell /usr/sbin/nologin --uid 7 --comment litterbox environment app-1234"

// An account of an environment is made, made again and removed; that of a person
// stays as it is, under any name.
func TestAccounts(t *testing.T) {
	t.Parallel()
	ours := user.User{Username: "app-1234", Uid: "7", Name: "litterbox environment"}
	other := ours
	other.Uid = "8"
	person := user.User{Username: "app-1234", Uid: "7", Name: "Ada"}
	for name, c := range map[string]struct {
		there []user.User
		make  []string
		drop  []string
		kind  fault.Kind
	}{
		"none":     {make: []string{makes}},
		"there":    {there: []user.User{ours}, drop: []string{"userdel app-1234"}},
		"left":     {there: []user.User{other}, make: []string{"userdel app-1234", makes}, drop: []string{"userdel app-1234"}},
		"a person": {there: []user.User{person}, kind: fault.AlreadyExists},
	} {
		t.Run(name, func(t *testing.T) {
			a, ran := accounts(c.there...)
			if err := a.Make(t.Context(), "app-1234", 7); fault.KindOf(err) != c.kind {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(c.make, *ran, cmp.Transformer("nil", func(s []string) string { return strings.Join(s, "\n") })); diff != "" {
				t.Errorf("to make it (- want, + ran):\n%s", diff)
			}
			a, ran = accounts(c.there...)
			if err := a.Remove(t.Context(), "app-1234"); err != nil {
				t.Error(err)
			}
			if got, want := strings.Join(*ran, "\n"), strings.Join(c.drop, "\n"); got != want {
				t.Errorf("to remove it: %q, want %q", got, want)
			}
		})
	}
}
