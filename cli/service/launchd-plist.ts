import { join } from 'node:path'
import { marked } from '../../plugins/desk/daemon/installed-service.js'
import type { ServiceFacts } from './facts.js'

const SHUTDOWN_SECONDS = 40
/** Minimum seconds before launchd restarts a failed program. */
const THROTTLE_SECONDS = 10

/**
 * The daemon as a launchd agent. It exits with 0 when another start would fail too, because launchd distinguishes no other code.
 */
export function launchdPlist(label: string, { argv, home, path, stopWait, userHome }: ServiceFacts): string {
  const log = join(userHome, 'Library/Logs', `${label}.log`)
  const value = (text: string) => `<string>${escaped(text)}</string>`
  return marked(
    `${[
      '<?xml version="1.0" encoding="UTF-8"?>',
      '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
      '<!-- @mark -->',
      '<plist version="1.0">',
      '<dict>',
      '  <key>Label</key>',
      `  ${value(label)}`,
      '  <key>ProgramArguments</key>',
      '  <array>',
      ...argv.map(word => `    ${value(word)}`),
      '  </array>',
      '  <key>EnvironmentVariables</key>',
      '  <dict>',
      '    <key>PATH</key>',
      `    ${value(path)}`,
      '    <key>SVC_HOME</key>',
      `    ${value(home)}`,
      '  </dict>',
      '  <key>WorkingDirectory</key>',
      `  ${value(userHome)}`,
      '  <key>RunAtLoad</key>',
      '  <true/>',
      '  <key>KeepAlive</key>',
      '  <dict>',
      '    <key>SuccessfulExit</key>',
      '    <false/>',
      '  </dict>',
      '  <key>ThrottleInterval</key>',
      `  <integer>${THROTTLE_SECONDS}</integer>`,
      '  <key>ExitTimeOut</key>',
      `  <integer>${stopWait + SHUTDOWN_SECONDS}</integer>`,
      '  <key>ProcessType</key>',
      '  <string>Standard</string>',
      '  <key>StandardOutPath</key>',
      `  ${value(log)}`,
      '  <key>StandardErrorPath</key>',
      `  ${value(log)}`,
      '</dict>',
      '</plist>',
    ].join('\n')}\n`,
  )
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
