/** Caches the shell of the console for use without a daemon. Browsers allow service workers only for local pages and HTTPS. */
export function installWorker(): void {
  if (!('serviceWorker' in navigator)) return
  // Without the worker, the console works only while the daemon runs.
  navigator.serviceWorker
    .register('/console/assets/worker.js', { scope: '/console', updateViaCache: 'none' })
    .catch(() => {})
}
