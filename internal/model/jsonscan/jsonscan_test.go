package jsonscan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// The grammar is that of encoding/json.
func FuzzComplete(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `"a"`, `0`, `-0.5e+10`, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `nul`, `tru e`, ``, ` `, `{} `, `{}{}`,
		`{"a":1,"b":[1,2,{"c":null}]}`, `{"a" : 1 , "b" : 2 }`, `{"a":1,}`, `[1,]`, `[,1]`, `{"a"}`, `{a:1}`, `{"a":}`, `{1:2}`,
		`"\u12aF\n\\\/\""`, `"\u12g0"`, `"\u12"`, `"\x"`, "\"a\nb\"", "\"\x00\"", `"`, `"\`, "\"\xff\"", "\ufeff{}", "\v{}", strings.Repeat("[", 50) + strings.Repeat("]", 50),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if strings.Count(string(b), "[")+strings.Count(string(b), "{") > MaxDepth {
			return
		}
		if got, want := IsComplete(b), json.Valid(b); got != want {
			t.Fatalf("Complete(%q) = %v, want %v", b, got, want)
		}
		if !IsComplete(b) {
			return
		}
		b = b[skipSpace(b, 0):]
		compareMembers(t, b)
		compareElements(t, b)
	})
}

func compareMembers(t *testing.T, b []byte) {
	var want map[string]json.RawMessage
	if json.Unmarshal(b, &want) != nil || want == nil || !utf8.Valid(b) || strings.Contains(string(b), `\`) {
		return
	}
	got := map[string]json.RawMessage{}
	m := Members(b)
	for m.Nulls = true; m.Next(); {
		got[string(m.Key)] = m.Val
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("members of %q are %q, want %q", b, got, want)
	}
}

func compareElements(t *testing.T, b []byte) {
	var want []json.RawMessage
	if json.Unmarshal(b, &want) != nil || len(want) == 0 {
		return
	}
	var got []json.RawMessage
	for e := Elements(b); e.Next(); {
		got = append(got, e.Val)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("elements of %q are %q, want %q", b, got, want)
	}
}

// Strings decode as encoding/json decodes them, and cutting one in two between
// escapes gives the same text.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{
		`plain`, `\n\t\"\\\/\b\f\r`, `\u00e9\u4e16`, `\ud83d\udc4b`, `\ud83d`, `\udc4b`, `\udc4b\ud83d`, `\ud83d\ud83d\udc4b`, `\ud83dx\udc4b`, `世界 👋`, "\xff\xfe", "\xe4\xb8", `\ud83d\n`,
	} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		raw := []byte(`"` + s + `"`)
		var want string
		if !IsString(raw) || skipValue(raw, 0) != len(raw) || json.Unmarshal(raw, &want) != nil {
			return
		}
		got := String(raw)
		if !utf8.ValidString(got) {
			t.Errorf("String(%q) = %q", raw, got)
		}
		if utf8.ValidString(s) && got != want {
			t.Errorf("String(%q) = %q, want %q", raw, got, want)
		}
		if cut < 0 || cut > len(s) {
			return
		}
		a, b := []byte(`"`+s[:cut]+`"`), []byte(`"`+s[cut:]+`"`)
		if !IsComplete(a) || !IsComplete(b) {
			return
		}
		var j Joiner
		joined := j.AddString(a) + j.AddString(b) + j.Flush()
		if joined != got {
			t.Errorf("%q cut at %d is %q, want %q", s, cut, joined, got)
		}
	})
}

func TestJoiner(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"whole", []string{"a", "世", "👋"}, "a世👋"},
		{"cut in a rune", []string{"a\xe4", "\xb8", "\x96b"}, "a世b"},
		{"never completed", []string{"a\xe4\xb8"}, "a\uFFFD"},
		{"completed wrongly", []string{"a\xe4\xb8", "b"}, "a\uFFFD\uFFFDb"},
		{"pair cut in two", []string{`a\ud83d`, `\udc4b`}, "a👋"},
		{"half a pair", []string{`\ud83d`, "x"}, "\uFFFDx"},
		{"the second half alone", []string{`\udc4b`}, "\uFFFD"},
		{"no half but a backslash before it", []string{`\\ud83d`, "x"}, `\ud83dx`},
		{"an ordinary rune that begins alike", []string{"\xed", "\x95\x9c"}, "한"},
	} {
		var j Joiner
		got := ""
		for _, p := range tc.pieces {
			s := j.AddString([]byte(`"` + p + `"`))
			if !utf8.ValidString(s) {
				t.Errorf("%s: %q is not valid", tc.name, s)
			}
			got += s
		}
		if got += j.Flush(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
