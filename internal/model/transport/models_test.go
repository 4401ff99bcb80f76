package transport

import (
	"strings"
	"testing"
)

func TestTheListOfModelsInTheFormsServersGiveIt(t *testing.T) {
	for body, want := range map[string]string{
		`{"object":"list","data":[{"id":"b"},{"id":"a"},{"id":"a"}]}`: "a b",
		`{"models":[{"name":"llama3:8b","model":"llama3:8b"},"x"]}`:   "llama3:8b x",
		`[{"id":"one"},{"nothing":1},7]`:                              "one",
		`{"data":[]}`:                                                 "",
		`<html>`:                                                      "",
		`{"data":{"id":"no list"}}`:                                   "",
		`{"models":[{"name":"models/gemini-x"}]}`:                     "gemini-x",
		`{"data":[{"id":"a\u001b[2Jb"}]}`:                             "ab",
	} {
		if got := strings.Join(readModels([]byte(body)), " "); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzReadModels(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a"}]}`))
	f.Add([]byte(`[1,"x",{}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, name := range readModels(body) {
			if name == "" || strings.ContainsAny(name, "\x1b\n") {
				t.Errorf("%q", name)
			}
		}
	})
}
