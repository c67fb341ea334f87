// Package intercept looks into TLS, and into HTTP/2, for the few hosts for
// which a rule speaks of methods or paths: it answers the sandbox's handshake
// with a certificate from an authority that only this one sandbox trusts, reads
// requests with net/http, asks about each of them, and sends what is admitted
// on over a connection on which the real host was verified. What goes out is
// written anew from what was decided on, so nothing can be smuggled past the
// decision inside it.
//
// It takes no decision of its own and dials nothing by itself; both are an
// egress.Session's. Nothing is made before it is needed: most sandboxes never
// have such a rule. Start reading at [Inspector.Inspect].
package intercept
