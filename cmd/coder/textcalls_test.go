package main

import (
	"net/http"
	"strings"
	"testing"

	"coder/testkit/faultserver"
)

// What was found out about a model at an endpoint holds for the next process, and
// for no other endpoint.
func TestHowAModelCallsToolsIsRemembered(t *testing.T) {
	call := faultserver.Stream(faultserver.Text("```json\n{\"name\": \"read\", "), faultserver.Text("\"arguments\": {\"path\": \"a.txt\"}}\n```"), faultserver.Finish("stop"))
	done := faultserver.Stream(faultserver.Text("It says hello."), faultserver.Finish("stop"))
	for name, first := range map[string][]faultserver.Reply{
		"the server does not support tools": {faultserver.Status(http.StatusInternalServerError, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`), call, done},
		"the model writes":                  {call, done},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := connected(t, "")
			s.Script(first...)
			look := func() {
				t.Helper()
				if out, stderr, code := p.run("-p", "look at a.txt"); code != 0 || out != "It says hello.\n" || strings.Contains(stderr, "```") || !strings.Contains(stderr, "[tool] read a.txt") {
					t.Fatalf("%q, code %d: %s", out, code, stderr)
				}
			}
			look()
			requests := len(s.Requests())
			if requests != len(first) {
				t.Errorf("%d requests, want %d: nothing is tried twice", requests, len(first))
			}
			s.Script(call, done)
			look()
			for _, r := range s.Requests()[requests:] {
				if strings.Contains(string(r.Body), `"tools":[`) || !strings.Contains(string(r.Body), "# Tools") {
					t.Errorf("the next process asks otherwise: %.200s", r.Body)
				}
			}
			p.env = append(p.env, "CODER_MODEL=another")
			s.Script(call, done)
			look()
			if last := s.Requests()[len(s.Requests())-1]; !strings.Contains(string(last.Body), `"tools":[`) {
				t.Errorf("another model is asked in text: %.200s", last.Body)
			}
		})
	}
}
