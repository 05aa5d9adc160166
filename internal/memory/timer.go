package memory

import (
	"encoding/xml"
	"fmt"
	"path"
	"strings"
	"time"

	"reprise/internal/shellword"
)

// TimerFile is one file that makes the system run a sync now and then.
type TimerFile struct {
	Path    string
	Content string
}

// Timer is what installs a periodic sync: files to write and the commands that
// a person runs to switch it on and off.
type Timer struct {
	Files       []TimerFile
	Enable, Off []string
}

// TimerOptions name the places of the platform. Dirs are absolute.
type TimerOptions struct {
	GOOS      string
	Program   string        // absolute path of reprise
	Args      []string      // after the program, such as --config FILE
	Every     time.Duration // at least 5 minutes; 0 = 4 hours
	ConfigDir string        // systemd: XDG_CONFIG_HOME or ~/.config
	Home      string        // launchd
	StateDir  string        // Windows: where the task's definition is kept
}

const timerName = "reprise-memory-sync"

// NewTimer makes the files of a periodic sync: a systemd user timer on Linux, a
// launch agent on macOS, a Task Scheduler task on Windows.
func NewTimer(o TimerOptions) (Timer, error) {
	if o.Every == 0 {
		o.Every = 4 * time.Hour
	}
	if o.Every < 5*time.Minute || o.Every > 24*time.Hour {
		return Timer{}, fmt.Errorf("make sync timer: %s between runs; it must be from 5 minutes to 24 hours", o.Every)
	}
	args := append([]string{o.Program}, append(o.Args, "memory", "sync")...)
	for _, a := range args {
		if strings.ContainsAny(a, "\r\n\x00") {
			return Timer{}, fmt.Errorf("make sync timer: %q cannot be an argument", a)
		}
	}
	switch o.GOOS {
	case "windows":
		return windowsTimer(o, args), nil
	case "darwin":
		return launchdTimer(o, args), nil
	case "linux":
		return systemdTimer(o, args), nil
	}
	return Timer{}, fmt.Errorf("make sync timer: not known how on %s; run `reprise memory sync` from cron", o.GOOS)
}

func systemdTimer(o TimerOptions, args []string) Timer {
	quoted := make([]string, len(args))
	for i, a := range args {
		a = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(a)
		quoted[i] = `"` + a + `"`
	}
	dir := path.Join(o.ConfigDir, "systemd", "user")
	secs := int(o.Every / time.Second)
	return Timer{
		Files: []TimerFile{
			{path.Join(dir, timerName+".service"), "[Unit]\nDescription=Back up the memory of reprise\n\n[Service]\nType=oneshot\nExecStart=" +
				strings.Join(quoted, " ") + "\nTimeoutStartSec=600\n"},
			{path.Join(dir, timerName+".timer"), fmt.Sprintf("[Unit]\nDescription=Back up the memory of reprise now and then\n\n[Timer]\nOnStartupSec=300\nOnUnitActiveSec=%d\nRandomizedDelaySec=60\n\n[Install]\nWantedBy=timers.target\n", secs)},
		},
		Enable: []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + timerName + ".timer"},
		Off:    []string{"systemctl --user disable --now " + timerName + ".timer"},
	}
}

func launchdTimer(o TimerOptions, args []string) Timer {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>reprise.memory-sync</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range args {
		b.WriteString("\t\t<string>" + escapeXML(a) + "</string>\n")
	}
	fmt.Fprintf(&b, "\t</array>\n\t<key>StartInterval</key>\n\t<integer>%d</integer>\n\t<key>ProcessType</key>\n\t<string>Background</string>\n</dict>\n</plist>\n", int(o.Every/time.Second))
	file := path.Join(o.Home, "Library", "LaunchAgents", "reprise.memory-sync.plist")
	return Timer{
		Files:  []TimerFile{{file, b.String()}},
		Enable: []string{"launchctl load -w " + shellword.Quote(file)},
		Off:    []string{"launchctl unload -w " + shellword.Quote(file)},
	}
}

func windowsTimer(o TimerOptions, args []string) Timer {
	quoted := make([]string, 0, len(args))
	for _, a := range args[1:] {
		if a == "" || strings.ContainsAny(a, " \t\"") {
			a = `"` + strings.ReplaceAll(a, `"`, `\"`) + `"`
		}
		quoted = append(quoted, a)
	}
	text := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Back up the memory of reprise</Description>
  </RegistrationInfo>
  <Triggers>
    <TimeTrigger>
      <StartBoundary>2026-01-01T00:00:00</StartBoundary>
      <Repetition>
        <Interval>PT%dM</Interval>
      </Repetition>
    </TimeTrigger>
  </Triggers>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT10M</ExecutionTimeLimit>
  </Settings>
  <Actions>
    <Exec>
      <Command>%s</Command>
      <Arguments>%s</Arguments>
    </Exec>
  </Actions>
</Task>
`, int(o.Every/time.Minute), escapeXML(args[0]), escapeXML(strings.Join(quoted, " ")))
	file := strings.TrimRight(o.StateDir, `\/`) + `\` + timerName + ".xml"
	return Timer{
		Files:  []TimerFile{{file, text}},
		Enable: []string{`schtasks /Create /TN "` + timerName + `" /XML "` + file + `" /F`},
		Off:    []string{`schtasks /Delete /TN "` + timerName + `" /F`},
	}
}

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
