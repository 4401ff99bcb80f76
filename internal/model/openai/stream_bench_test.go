package openai

import (
	"testing"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
)

// BenchmarkLoopback reads a reply of 20,000 deltas through net/http, the cost
// of the server included: one write for each delta, or one for all.
func BenchmarkLoopback(b *testing.B) {
	for _, tc := range []struct{ name, fault string }{{"many writes", "sse-many-deltas"}, {"giant line", "giant-line"}} {
		b.Run(tc.name, func(b *testing.B) {
			s := faultserver.Start(b, faultserver.Options{})
			c := client(b, transport.Options{BaseURL: s.Base(tc.fault), IdleTimeout: idle})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := collect(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("few writes", func(b *testing.B) {
		var ds []provider.Delta
		for range faultserver.Many {
			ds = append(ds, provider.TextDelta("word "))
		}
		reply := faultserver.Deltas(append(ds, provider.Done{Stop: provider.StopEnd}))
		s := faultserver.Start(b, faultserver.Options{})
		c := client(b, transport.Options{BaseURL: s.Base(""), IdleTimeout: idle})
		b.ReportAllocs()
		for b.Loop() {
			s.Script(reply)
			if _, err := collect(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
