package web

import "reprise/internal/web/watch"

// sources are what the pages show: files, and what the servers of a fleet say.
func (s *Server) sources() []watch.Source {
	d := &s.deps
	list := []watch.Source{{Topic: "runs", Look: s.runLook}}
	if d.LoopDir != "" {
		list = append(list, watch.Source{Topic: "loop", Look: s.loopLook}, watch.Source{Topic: "queue", Look: s.queueLook()})
	}
	if d.Checks != nil {
		list = append(list, watch.Source{Topic: "checks", Look: func(l *watch.Look) {
			for _, file := range d.Checks.Files {
				l.File(file)
			}
		}})
	}
	if d.Fleet != nil {
		list = append(list, watch.Source{Topic: "fleet", Look: func(l *watch.Look) {
			sign, _ := s.fleetSigns()
			l.Number(sign)
		}})
	}
	if d.Tasks != nil {
		list = append(list, watch.Source{Topic: "tasks", Look: taskLook(d.Tasks.Dir())})
	}
	if d.Memory != nil {
		list = append(list, watch.Source{Topic: "memory", Look: func(l *watch.Look) {
			for _, dir := range d.Memory.Dirs {
				l.Dir(dir, true)
			}
		}})
	}
	if d.Events != nil {
		list = append(list, watch.Source{Topic: "events", Look: func(l *watch.Look) { l.Dir(d.Events.Dir, true) }})
	}
	if d.State != nil {
		list = append(list, watch.Source{Topic: "state", Look: s.stateLook()})
	}
	if d.Guard != nil {
		list = append(list, watch.Source{Topic: "guard", Look: func(l *watch.Look) { l.Dir(d.Guard.Dir, true) }})
	}
	return list
}
