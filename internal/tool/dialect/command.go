package dialect

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var applyPatch = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(?:apply_patch|applypatch)\b`) })

// Command reads a command line that calls what is a tool here: a patch handed
// to apply_patch. Together with other commands, or in another folder, it is
// refused.
func Command(args json.RawMessage) (Call, bool, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil {
		return Call{}, false, nil
	}
	line, elsewhere := "", false
	for name, v := range given {
		switch fold(name) {
		case "command", "cmd":
			line = lineOf(v)
		case "workdir", "cwd", "workingdir", "workingdirectory", "directory", "dirpath":
			elsewhere = elsewhere || !slices.Contains([]string{"", "."}, plain(v))
		}
	}
	begin, end := strings.Index(line, "*** Begin Patch"), strings.LastIndex(line, "*** End Patch")
	if begin < 0 || !strings.Contains(line[:begin], "apply_patch") && !strings.Contains(line[:begin], "applypatch") {
		return Call{}, false, nil
	}
	if !applyPatch().MatchString(line) || elsewhere || end < begin || len(strings.Fields(line[end+len("*** End Patch"):])) > 1 {
		return Call{}, true, &Refused{"apply_patch", "this is no command here; call the tool patch with the text from *** Begin Patch to *** End Patch, by itself, and with paths from the workspace on"}
	}
	text, err := json.Marshal(map[string]string{"patch": line[begin:end] + "*** End Patch"})
	return Call{Tool: "patch", Args: text, Note: "taken: apply_patch as the tool patch"}, true, err
}

// lineOf is a command line that may be given as a list of words. Quotes do not
// matter for what is looked for in it.
func lineOf(raw json.RawMessage) string {
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		return plain(raw)
	}
	if len(words) == 3 && isShell(words[0]) {
		return words[2]
	}
	return strings.Join(words, " ")
}
