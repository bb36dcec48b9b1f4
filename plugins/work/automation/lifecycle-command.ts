/** Classes of commands that would stop the daemon running them. */
export type LifecycleClass = 'svc_daemon' | 'process_signal' | 'service_manager'

const PRODUCT = /\bsvc\b/i
const DAEMON = /\bsvc\s+daemon\s+(?:stop|restart|start)\b/i
const SIGNAL = /\b(?:pkill|killall)\s|\bkill\s+(?:-\w+\s+){0,3}["']?(?:\$\(|`)?\s*(?:pidof|pgrep|cat|jq|svc)\b/i
const MANAGER = /\b(?:systemctl|service|launchctl|rc-service|initctl|supervisorctl|pm2|brew\s+services)\s/i
const ENDING = /\b(?:stop|restart|kill|bootout|unload|disable|kickstart|reload|delete)\b/i

/** Detects a line that looks like a command to stop, restart or kill the daemon. */
export function lifecycleCommand(text: string): LifecycleClass | undefined {
  for (const line of text.split('\n')) {
    if (!PRODUCT.test(line)) continue
    if (DAEMON.test(line)) return 'svc_daemon'
    if (SIGNAL.test(line)) return 'process_signal'
    if (MANAGER.test(line) && ENDING.test(line)) return 'service_manager'
  }
  return undefined
}
