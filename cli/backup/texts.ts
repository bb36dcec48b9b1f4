const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** `12.3 MB` */
export function sizeText(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`
}
