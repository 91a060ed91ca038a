/* Every suite: each function registers one with CUnit. */
#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

/* tests/unit */
void add_ckptsrv_tests(void);
void add_clock_tests(void);
void add_copy_tests(void);
void add_counts_tests(void);
void add_cred_tests(void);
void add_dial_tests(void);
void add_disk_tests(void);
void add_loop_tests(void);
void add_relay_link_tests(void);
void add_relay_restarts_tests(void);
void add_fault_tests(void);
void add_files_tests(void);
void add_frame_tests(void);
void add_image_stream_tests(void);
void add_input_tests(void);
void add_commit_tests(void);
void add_job_events_tests(void);
void add_journal_tests(void);
void add_restore_tests(void);
void add_squeeze_tests(void);
void add_job_tests(void);
void add_job_hosts_tests(void);
void add_job_state_tests(void);
void add_ledger_tests(void);
void add_left_tests(void);
void add_left_out_tests(void);
void add_keyfile_tests(void);
void add_log_tests(void);
void add_point_tests(void);
void add_match_tests(void);
void add_options_tests(void);
void add_out_tests(void);
void add_output_tests(void);
void add_output_places_tests(void);
void add_parse_tests(void);
void add_places_tests(void);
void add_rank_input_tests(void);
void add_rank_io_tests(void);
void add_launch_tests(void);
void add_pmi_tests(void);
void add_program_tests(void);
void add_rank_session_tests(void);
void add_readings_tests(void);
void add_restart_tests(void);
void add_ring_tests(void);
void add_rundir_tests(void);
void add_secret_tests(void);
void add_homes_tests(void);
void add_hosts_tests(void);
void add_setup_tests(void);
void add_status_tests(void);
void add_store_tests(void);
void add_supply_tests(void);
void add_transport_tests(void);
void add_uring_tests(void);
void add_wait_policy_tests(void);
void add_watcher_tests(void);
void add_wire_tests(void);
void add_kept_tests(void);
void add_hello_tests(void);
void add_servers_tests(void);
void add_images_tests(void);

/* tests/trace */
void add_active_tests(void);
void add_divergence_tests(void);
void add_cut_tests(void);
void add_large_tests(void);
void add_log_bounds_tests(void);
void add_log_disk_tests(void);
void add_matching_tests(void);
void add_memory_tests(void);
void add_share_tests(void);
void add_start_from_point_tests(void);
void add_trim_tests(void);
void add_random_points_tests(void);
void add_probe_tests(void);
void add_recovery_large_tests(void);
void add_recovery_tests(void);
void add_resume_tests(void);
void add_return_tests(void);
void add_return_link_tests(void);
void add_return_job_tests(void);
void add_session_tests(void);
void add_take_tests(void);
void add_door_tests(void);
void add_link_tests(void);

/* tests/conformance */
void add_engine_tests(void);

#endif
