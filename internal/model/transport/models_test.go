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
		var names []string
		for _, m := range readModels([]byte(body)) {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzReadModels(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a"}]}`))
	f.Add([]byte(`[1,"x",{}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, m := range readModels(body) {
			if m.Name == "" || strings.ContainsAny(m.Name, "\x1b\n") || m.Window < 0 || m.Output < 0 {
				t.Errorf("%+v", m)
			}
		}
	})
}
