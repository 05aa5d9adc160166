package fleet

import "strings"

// Names are what a project's things are called on the servers. In all of them stands the
// namespace of the settings, then what it is, then the project, so that servers can
// be told by patterns who may do what.
type Names struct {
	// Queue is the key-value bucket with the work items, one key an item.
	Queue string
	// Large is the object store for what of items is too long for one message.
	Large string
	// Files is the object store for artefacts of runs.
	Files string
	// Output is the stream that keeps what runs say, under the subjects
	// OutputSubject(run).
	Output string

	subject string
}

// NamesOf are the names of one project's things; project "" is the global scope.
func NamesOf(namespace, project string) Names {
	t := Token(project)
	return Names{
		Queue: namespace + "-queue-" + t, Large: namespace + "-large-" + t, Files: namespace + "-files-" + t, Output: namespace + "-output-" + t,
		subject: namespace + "." + t,
	}
}

// Token is a project's name as it stands in names of buckets and subjects. Projects'
// names have lower-case letters only, so upper-case ones stand for what may not be
// there: "D" for a dot, "GLOBAL" for what is outside any project.
func Token(project string) string {
	if project == "" {
		return "GLOBAL"
	}
	return strings.ReplaceAll(project, ".", "D")
}

// OutputSubject is what a run's output is published under; with "*" it is that of
// all runs.
func (n Names) OutputSubject(run string) string { return n.subject + ".output." + run }
