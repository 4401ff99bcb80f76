package git

import "testing"

func TestTrailer(t *testing.T) {
	const by = "Co-authored-by: coder <c@x>"
	for message, want := range map[string]string{
		"Fix it":                           "Fix it\n\n" + by + "\n",
		"Fix it\n\nbody\n":                 "Fix it\n\nbody\n\n" + by + "\n",
		"Fix it\n\nSigned-off-by: A <a@x>": "Fix it\n\nSigned-off-by: A <a@x>\n" + by + "\n",
		"Fix it\n\n" + by:                  "Fix it\n\n" + by,
		"Reviewed-by: nobody":              "Reviewed-by: nobody\n\n" + by + "\n",
	} {
		if got := withTrailer(message, by); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
	if got := withTrailer("Fix it", ""); got != "Fix it" {
		t.Errorf("%q", got)
	}
}
