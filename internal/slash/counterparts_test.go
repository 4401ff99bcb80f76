package slash_test

import (
	"strings"
	"testing"

	"coder/internal/slash"
)

func TestCounterpartsAreCommandsThatAreThere(t *testing.T) {
	names := make(map[string]bool)
	for _, c := range slash.All(slash.Deps{}) {
		names[c.Name] = true
	}
	for other, ours := range slash.Counterparts {
		name, _, _ := strings.Cut(strings.TrimPrefix(ours, "/"), " ")
		if strings.HasPrefix(ours, "/") && !names[name] || names[other] {
			t.Errorf("/%s: use %s", other, ours)
		}
	}
}
