// Package intercept looks into TLS, and into HTTP/2, for the few hosts for
// which a rule names methods or paths: it answers the sandbox's handshake with
// a certificate from an authority that only this one sandbox trusts, reads
// requests with net/http, asks about each of them, and sends the admitted ones
// on over a connection on which the real host was verified. Each outgoing
// request is written again from what was decided on, so nothing can be smuggled
// past the decision inside it.
//
// It makes no decision of its own and dials nothing by itself; an
// egress.Session does both. Nothing is created before it is needed: most
// sandboxes never have such a rule. Start reading at [Inspector.Inspect].
package intercept
