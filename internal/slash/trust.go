package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/policy/trust"
)

// Trust shows or changes whether the folder root is trusted. Settings are read
// when the program starts.
func Trust(book trust.Book, root string) Command {
	return Command{
		Name: "trust", Args: "[yes|no]", Help: "show or change whether this folder is trusted",
		Run: func(_ context.Context, c call) (outcome, error) {
			change, ok := map[string]func(string) error{"": nil, "yes": book.Give, "no": book.Take}[c.Args]
			if !ok {
				return wrong("/trust takes yes or no, not %q", c.Args)
			}
			if change != nil {
				if err := change(root); err != nil {
					return wrong("%v", err)
				}
			}
			text := "this folder is " + Standing(book, root)
			if files := trust.Settings(root); len(files) > 0 {
				text += "\nit has settings of its own: " + strings.Join(files, ", ")
			}
			if change != nil {
				text += "\nsettings are read when the program starts, so this holds from the next start on"
			}
			return say(text)
		},
	}
}

// Standing is how a folder stands now, which may not be how it stood when the
// program started.
func Standing(book trust.Book, root string) string {
	now, err := book.Of(root)
	if err != nil {
		return fmt.Sprintf("%s (%v)", now, err)
	}
	return now.String()
}
