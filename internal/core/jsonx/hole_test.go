package jsonx_test

import (
	"strings"
	"testing"

	"coder/internal/core/jsonx"
)

type holed struct {
	Before string `json:"before"`
	Text   string `json:"text"`
	Other  string `json:"other"`
}

// checkHoles holds a value written with holes against the same value written whole.
func checkHoles(t *testing.T, text, other string) {
	t.Helper()
	want, err := jsonx.Append([]byte("line:"), holed{"a", text, other})
	if err != nil {
		t.Fatal(err)
	}
	var h jsonx.Holes
	v := holed{"a", h.Add(text), h.Add(other)}
	got, err := h.Append([]byte("line:"), v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("with holes %.80q…, whole %.80q…", got, want)
	}
}

func TestHolesWriteWhatAnEncoderWrites(t *testing.T) {
	every := new(strings.Builder)
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	for r := rune(0x80); r < 0x3000; r++ {
		every.WriteRune(r)
	}
	large := strings.Repeat(every.String()+"\xe2\x80<>&\U0001f600", 8)
	for _, c := range [][2]string{{"", ""}, {"short", "too"}, {large, "short"}, {"short", large}, {large, large + "\xf0"}} {
		checkHoles(t, c[0], c[1])
	}
}

func FuzzHoles(f *testing.F) {
	f.Add("a\"\\\x00\x1f\x7f\u2028\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if text != "" {
			checkHoles(t, strings.Repeat(text, 1+(64<<10)/len(text)), text)
		}
	})
}
