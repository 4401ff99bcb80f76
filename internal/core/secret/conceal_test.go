package secret_test

import (
	"strings"
	"testing"

	"coder/internal/core/secret"

	"pgregory.net/rapid"
)

const key = "sk-abc-sk-abc-0123"

func TestKeysAreConcealed(t *testing.T) {
	c := secret.NewConcealer([]string{key, key + "-longer", `quo"te\d&key`, ""})
	for in, want := range map[string]string{
		"":                              "",
		"no key, sk-abc-sk-abc-01":      "no key, sk-abc-sk-abc-01",
		key:                             secret.KeyMask,
		"a " + key + " b":               "a " + secret.KeyMask + " b",
		"at the end " + key:             "at the end " + secret.KeyMask,
		"sk-abc-" + key:                 "sk-abc-" + secret.KeyMask,
		key + key:                       secret.KeyMask + secret.KeyMask,
		key + "-longer":                 secret.KeyMask,
		key + "-longe":                  secret.KeyMask + "-longe",
		`{"out":"quo\"te\\d&key"}`:      `{"out":"` + secret.KeyMask + `"}`,
		`{"out":"quo\"te\\d\u0026key"}`: `{"out":"` + secret.KeyMask + `"}`,
	} {
		if got := c.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	var none *secret.Concealer
	if got := none.Text(key); got != key {
		t.Errorf("without keys: %q", got)
	}
}

// However it is cut into writes, what comes out is what the whole would be, and
// what is held back is shorter than a key.
func TestKeysInPartsAreConcealed(t *testing.T) {
	c := secret.NewConcealer([]string{key, key + "-longer", "0123-x"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{key, key + "-longer", "sk-abc-", "s", "0123", "-x", "-long", "\n", "世", "\xff", " "})).Draw(t, "parts"), "")
		var out strings.Builder
		w := c.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := c.Text(text); out.String() != want {
			t.Fatalf("%q: %q, want %q", text, out.String(), want)
		}
		if strings.Contains(out.String(), key) {
			t.Fatalf("a key came through: %q", out.String())
		}
	})
}

func TestWithoutAKeyEveryByteComesThrough(t *testing.T) {
	for _, c := range []*secret.Concealer{nil, secret.NewConcealer(nil), secret.NewConcealer([]string{key})} {
		var out strings.Builder
		w := c.Writer(&out)
		text := "\x00\xff sk-abc-sk-ab\r\n世 sk-abc-sk-abc-012"
		for i := range len(text) {
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
			if len(text[:i+1])-out.Len() >= len(key) {
				t.Fatalf("%d bytes are held back", i+1-out.Len())
			}
		}
		if err := w.Flush(); err != nil || out.String() != text {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
}
