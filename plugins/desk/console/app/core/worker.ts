/** Keeps the shell of the console for times without a daemon. Browsers offer it only to pages of this machine and of HTTPS. */
export function installWorker(): void {
  if (!('serviceWorker' in navigator)) return
  // Without it the console works as long as the daemon runs.
  navigator.serviceWorker
    .register('/console/assets/worker.js', { scope: '/console', updateViaCache: 'none' })
    .catch(() => {})
}
