package event

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every durable event has its row in the documentation, with every field there is.
func TestEventsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range durableTypes {
		_, row, found := strings.Cut(string(text), "\n| `"+n.name+"` | ")
		if row, _, _ = strings.Cut(row, "\n"); !found {
			t.Errorf("docs/reference/events.md has no row for %s", n.name)
			continue
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(n.zero)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the row of %s in docs/reference/events.md does not name %s", n.name, name)
			}
		}
	}
}
