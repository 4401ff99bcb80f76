package dialect

import (
	"encoding/json"
	"regexp"
	"strings"
)

var applyPatch = regexp.MustCompile(`^\s*(?:apply_patch|applypatch)\b`)

// Command reads a command line that calls what is a tool here: a patch handed
// to apply_patch. Together with other commands it is refused.
func Command(args json.RawMessage) (Call, bool, error) {
	var given struct{ Command, Cmd string }
	if json.Unmarshal(args, &given) != nil {
		return Call{}, false, nil
	}
	line := given.Command + given.Cmd
	begin, end := strings.Index(line, "*** Begin Patch"), strings.LastIndex(line, "*** End Patch")
	if begin < 0 || !strings.Contains(line[:begin], "apply_patch") && !strings.Contains(line[:begin], "applypatch") {
		return Call{}, false, nil
	}
	if !applyPatch.MatchString(line) || end < begin || len(strings.Fields(line[end+len("*** End Patch"):])) > 1 {
		return Call{}, true, &Refused{"apply_patch", "this is no command here; call the tool patch with the text from *** Begin Patch to *** End Patch, by itself"}
	}
	text, err := json.Marshal(map[string]string{"patch": line[begin:end] + "*** End Patch"})
	return Call{Tool: "patch", Args: text, Note: "taken: apply_patch as the tool patch"}, true, err
}
