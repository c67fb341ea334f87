// Package inject is the hook that puts the values of secrets into requests:
// the value takes the place of its placeholder where a secret says so, on the
// way to a host that the secret names, and the placeholder takes the place of
// the value in all that the host answers. A placeholder on its way to any other
// host is refused.
//
// What it does not see it cannot change: TLS to hosts that no secret and no
// rule speaks of stays end to end, and so does all that is no HTTP. It stands
// last in the row of hooks, so that no other sees a value. Start reading at
// [Hook.Wrap].
package inject
