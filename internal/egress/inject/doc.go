// Package inject is the hook that puts the values of secrets into requests:
// the value replaces its placeholder where a secret says so, on the way to a
// host that the secret names, and the placeholder replaces the value in all
// that the host answers. A placeholder on its way to any other host is refused.
//
// What it does not see it cannot change: TLS to hosts that no secret and no rule
// mentions stays end to end, and so does everything that is not HTTP. It is the
// last hook in the row but for the one that renews logins, so that the others see
// no value. Start reading at [Hook.Wrap].
package inject
