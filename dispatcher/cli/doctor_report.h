/* `causeway doctor --report`: what `causeway doctor` of another machine starts on each host. */
#ifndef DISPATCHER_DOCTOR_REPORT_H
#define DISPATCHER_DOCTOR_REPORT_H

/* Tells on standard output what there is (dispatcher/doctor/report.h), then answers the requests of
 * standard input until its end. `directory`: of a job; `program`: that is to run, or NULL. Returns
 * the exit code. */
int doctor_report(const char *directory, const char *program);

#endif
